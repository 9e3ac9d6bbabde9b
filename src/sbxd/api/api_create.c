/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes. With rules or a start the call is all or nothing: a file next to the spec
 * marks the sandbox from before it is in the registry until its reply is written. If the client
 * closes the connection before that, a step fails, or sbxd exits, the sandbox is removed with its
 * rules and files: by conn_on_loss, fail_create, or api_create_sweep of the next sbxd. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api_internal.h"
#include "api_policy.h"
#include "api_ports.h"
#include "ref_check.h"
#include "share_check.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/journal/journal.h"
#include "src/sbxd/policy/policy.h"
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/program/run_places.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/share/place.h"

#define START_MS clock_limit_ms(300000)
#define LOOK_MS 5000  /* how often a keeper that reports nothing is checked */
#define UNDO_MS 60000 /* a removal that takes longer continues without the client */
#define MAX_LOG (1 << 20)
#define MARK ".creating"

/* ---- the request ---- */

/* With rules or a start: the call has no effect unless it is answered. */
static bool is_whole(const struct api_create_body *more)
{
	return more->has_rules || more->start;
}

/* Already created by the same request? Then reply with that sandbox. Rules and a start are not
 * compared: a sandbox with them was either answered or removed. */
static bool answer_existing(struct sbxd *d, struct conn *c, const struct spec *wanted,
	const struct api_create_body *more)
{
	AUTO_ROW struct store_row row = {0};

	if (!wanted->id[0] || store_get(d->store, wanted->id, &row, NULL) < 0)
		return false;
	if (is_whole(more))
		api_refuse(d, c, 409, "conflict", "a sandbox with this id already exists");
	else if (spec_matches(&row.spec, wanted))
		api_reply_row(d, c, 200, &row);
	else
		api_refuse(d, c, 409, "conflict",
			"a sandbox with this id and a different spec already exists");
	return true;
}

static int complete_spec(struct spec *spec, struct err *err)
{
	AUTO_SETTINGS struct settings set = {0};
	int r = settings_load(&set, err);

	if (r < 0)
		return -EINVAL;
	if (!spec->id[0])
		str_random_hex(spec->id, SPEC_ID_LEN / 2);
	spec_set_defaults(spec, (uint32_t)settings_get_u64(&set, SETTINGS_VM_CPUS),
		settings_get_u64(&set, SETTINGS_VM_MEMORY));
	if (!spec->guard &&
		spec_guard_parse(settings_get(&set, SETTINGS_SHARE_GUARD), &spec->guard) < 0)
		return err_set(err, -EINVAL, "invalid setting share.guard");
	spec->generation = 1;
	templates_pin(spec);
	return spec_check(spec, err);
}

/* Symlinks are resolved here only: later starts open the stored path and fail if it contains a
 * symlink. A guest may have write access to a parent directory. */
static int resolve_mount(struct spec_workspace *w, struct err *err)
{
	char *real = NULL;

	if (place_resolve(w->host, &real, err) < 0)
		return -EINVAL;
	free(w->host);
	w->host = real;
	return 0;
}

static int decode_create(struct sbxd *d, struct slice body, struct spec *spec,
	struct api_create_body *more, char **ret_hint, struct err *err)
{
	int r = api_decode_create(body, clock_wall_ms(), spec, more, err);

	if (r == 0 && spec->generation)
		return err_set(err, -EINVAL, "generation is set by sbxd");
	if (r == 0)
		r = share_check(d, spec, ret_hint, err);
	for (size_t i = 0; r == 0 && i < spec->n_workspaces; i++)
		if (place_check(spec->workspaces[i].host, NULL, spec->force, err) < 0)
			r = -EINVAL;
	for (size_t i = 0; r == 0 && i < spec->n_mounts; i++)
		r = resolve_mount(&spec->mounts[i], err);
	return r;
}

/* The keeper's spawner checks the same before each execution. */
static int check_askpass(const struct spec *spec, struct err *err)
{
	struct err why = {0};

	if (!spec->ssh.confirm || run_places_permit_program(spec->ssh.askpass, &why) == 0)
		return 0;
	return err_set(err, -EINVAL, "cannot use SSH_ASKPASS: %s", why.text);
}

static int insert_row(struct sbxd *d, const struct spec *spec, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("%s, %s", spec->name, spec->id);
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = "create",
		.sandbox = spec->name,
		.reason = reason};
	AUTO_ROW struct store_row taken = {0};
	int r = api_check_free(d, spec->name, NULL, err);

	if (r == 0)
		r = scope_drop_left_over(d, spec->name, err);
	if (r == 0)
		r = ports_prepare(d, &(struct spec){0}, spec, err);
	if (r == 0)
		r = ref_places_save(spec, err);
	if (r == 0)
		r = check_askpass(spec, err);
	if (r == 0)
		r = journal_append(d, &e, err);
	if (r == 0)
		r = store_insert(d->store, spec, clock_wall_ms(), err);
	if (r < 0 && store_get(d->store, spec->id, &taken, NULL) == -ENOENT)
		run_places_remove(spec->id);
	return r;
}

/* ---- the mark ---- */

static char *mark_path(const char *id)
{
	return paths_get(PATHS_STATE, "specs/%s" MARK, id);
}

static int set_mark(const char *id, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "specs"), *path = mark_path(id);
	AUTO_CLOSE int fd = -1;
	int r = paths_make(dir, err);

	if (r < 0)
		return r;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 || fsync(fd) < 0 ? err_errno(err, -errno, "cannot create %s", path) : 0;
}

static void clear_mark(const char *id)
{
	AUTO_FREE char *path = mark_path(id);

	(void)unlink(path);
}

/* ---- undo ---- */

/* Marks the sandbox as removed in the registry; its files follow. If the removal fails, the mark
 * remains for the next sbxd. */
static void remove_created(struct sbxd *d, const char *id, const char *why)
{
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	int r = store_get(d->store, id, &row, &err);

	if (r == 0) {
		log_info("sandbox '%s' is removed: %s", row.spec.name, why);
		r = api_remove(d, &row.spec, &err);
	}
	if (r == 0 || r == -ENOENT) /* not inserted, or removed by another client */
		clear_mark(id);
	else
		log_error("cannot remove sandbox '%s': %s", id, err_text(&err, r));
}

static void on_lost_client(struct sbxd *d, const char *id)
{
	remove_created(d, id, "the create call was not answered");
}

void api_create_sweep(struct sbxd *d)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "specs");
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;

	while ((e = dir_next(dir))) {
		AUTO_FREE char *id = xstrndup(e->d_name, SPEC_ID_LEN);

		if (spec_is_id(id) && strcmp(e->d_name + SPEC_ID_LEN, MARK) == 0)
			remove_created(d, id, "sbxd exited before the create call was answered");
	}
}

/* The log of the last start that failed outlives its sandbox. */
static void keep_log(const char *id)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "sandboxes/%s/keeper.log", id);
	AUTO_FREE char *kept = paths_get(PATHS_STATE, "failed-create.log");
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	size_t n = 0;
	int r;

	(void)unlink(kept);
	/* A compromised keeper may have created a symlink. */
	r = file_load_no_link(log, MAX_LOG, &text, &n, &err);
	if (r == 0)
		r = file_save(kept, slice_of(text, n), &err);
	if (r < 0)
		log_warn("the log of the failed start is lost: %s", err_text(&err, r));
}

static json_t *take_later(struct conn *c)
{
	json_t *o = c->later.answer;

	c->later.answer = NULL;
	return o;
}

static void wait_undone(struct sbxd *d, struct conn *c, bool late)
{
	if (late || (!keeper_find(d, c->wait_id) && !wipe_is_running(d, c->wait_id)))
		api_reply_json(d, c, c->later.status, take_later(c));
}

/* Replies with the error if the sandbox no longer exists. */
static void fail_create(
	struct sbxd *d, struct conn *c, const char *id, int r, const struct err *err)
{
	json_decref(take_later(c));
	c->later.answer = api_error(r, err, &c->later.status);
	conn_on_loss(c, NULL, "");
	conn_wait(d, c, wait_undone, id, UNDO_MS);
	remove_created(d, id, err->text);
	wait_undone(d, c, false);
}

/* ---- the start ---- */

static void finish_create(struct sbxd *d, struct conn *c, const struct store_row *row)
{
	json_t *o = api_object(d, row), *more = take_later(c);

	if (more)
		json_object_update(o, more);
	json_decref(more);
	/* First: the next sbxd must never remove a sandbox that was reported to the client. */
	clear_mark(row->spec.id);
	api_reply_json(d, c, 201, o);
}

/* Why it is neither starting nor running. */
static int find_reason(
	const struct store_row *row, const struct keeper *k, bool late, struct err *err)
{
	char why[KEEPER_MAX_TEXT + STORE_MAX_ERROR] = "";

	if (late)
		(void)snprintf(why, sizeof(why), "not ready after %u seconds",
			(unsigned)(START_MS / 1000));
	else if (k)
		keeper_detail(k, why, sizeof(why));
	else
		(void)snprintf(why, sizeof(why), "%s", row->last_error);
	return err_set(err, -ECANCELED, "sandbox '%s' did not start: %s", row->spec.name,
		why[0] ? why : keeper_status(k));
}

static void wait_created(struct sbxd *d, struct conn *c, bool late)
{
	struct keeper *k = keeper_find(d, c->wait_id);
	const char *status = keeper_status(k);
	bool is_late = clock_mono_ms() >= c->later.number;
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	char id[SPEC_ID_LEN + 1];
	int r;

	memcpy(id, c->wait_id, sizeof(id));
	if (starts_place(d->starts, id)) { /* the time counts from the real start */
		c->later.number = clock_mono_ms() + START_MS;
		if (late)
			conn_wait(d, c, wait_created, id, LOOK_MS);
		return;
	}
	if (!is_late && (strcmp(status, "starting") == 0 || strcmp(status, "stopping") == 0)) {
		if (late) {
			keeper_freshen(k);
			conn_wait(d, c, wait_created, id, LOOK_MS);
		}
		return;
	}
	r = store_get(d->store, id, &row, &err);
	if (r < 0) {
		(void)err_set(&err, r, "the sandbox was removed while it started");
	} else if (strcmp(status, "running") == 0) {
		finish_create(d, c, &row);
		return;
	} else {
		r = find_reason(&row, k, is_late, &err);
		keep_log(id);
	}
	fail_create(d, c, id, r, &err);
}

/* ---- the call ---- */

/* The sandbox is in the registry. */
static void go_on_creating(
	struct sbxd *d, struct conn *c, struct spec *spec, struct api_create_body *more)
{
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	int r = 0;

	if (is_whole(more))
		conn_on_loss(c, on_lost_client, spec->id);
	if (more->has_rules) {
		json_t *list = json_array();

		c->later.answer = json_pack("{s:o}", "rules", list);
		r = api_rules_add(d, more->rules, more->n_rules, list, &err);
	}
	if (r == 0 && more->start)
		r = api_launch(d, spec, SPEC_ACCEL_AUTO, more->cold, &err);
	if (r == 0 && !more->start)
		r = store_get(d->store, spec->id, &row, &err);
	if (r < 0) {
		fail_create(d, c, spec->id, r, &err);
	} else if (more->start) {
		c->later.number = clock_mono_ms() + START_MS;
		conn_wait(d, c, wait_created, spec->id, LOOK_MS);
	} else {
		finish_create(d, c, &row);
	}
}

/* All checks precede the first write. */
static int register_sandbox(
	struct sbxd *d, struct spec *spec, const struct api_create_body *more, struct err *err)
{
	int r = is_whole(more) ? set_mark(spec->id, err) : 0;

	if (r == 0)
		r = insert_row(d, spec, err);
	if (r < 0 && is_whole(more))
		clear_mark(spec->id);
	if (r == -EEXIST && !str_starts(err->text, "publish port:"))
		(void)err_set(err, r, "a sandbox named %s already exists", spec->name);
	return r;
}

void api_create(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_SPEC struct spec spec = {0};
	AUTO_API_CREATE struct api_create_body more = {0};
	AUTO_FREE char *hint = NULL;
	struct err err = {0};
	int r = decode_create(d, c->http.body, &spec, &more, &hint, &err);
	bool has_id = spec.id[0];

	if (r == 0 && answer_existing(d, c, &spec, &more))
		return;
	if (r == 0)
		r = complete_spec(&spec, &err);
	if (r == 0 && !api_rules_check(d, c, more.rules, more.n_rules))
		return;
	if (r == 0 && !has_id)
		pool_offer(d, &spec);
	if (r == 0)
		r = register_sandbox(d, &spec, &more, &err);
	if (r == -ELOOP) {
		api_fail(d, c, 400, "planted-link", err.text, hint);
		return;
	}
	if (!api_succeeded(d, c, r, &err))
		return;
	pool_take(d, spec.id);
	api_watch_changed(d, spec.id);
	go_on_creating(d, c, &spec, &more);
}
