/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api_internal.h"
#include "share_check.h"
#include "ref_check.h"
#include "api_ports.h"
#include "reload_reply.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/journal/journal.h"
#include "src/sbxd/policy/policy.h"
#include "src/sbxd/vault/vault.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/vm/share/place.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define DELETE_MS 60000

struct listing {
	struct sbxd *d;
	json_t *list;
};

static int add_to_list(void *arg, const struct store_row *row)
{
	struct listing *l = arg;

	json_array_append_new(l->list, api_object(l->d, row));
	return 0;
}

static void send_list(struct sbxd *d, struct conn *c)
{
	struct listing l = {.d = d, .list = json_array()};
	struct err err = {0};
	json_t *o = json_object();
	int r = store_list(d->store, NULL, 0, add_to_list, &l, &err);

	json_object_set_new(o, "sandboxes", l.list);
	if (r == 0) {
		api_reply_json(d, c, 200, o);
		return;
	}
	json_decref(o);
	api_fail_errno(d, c, r, &err);
}

static void wait_list(struct sbxd *d, struct conn *c, bool late)
{
	for (size_t i = 0; !late && i < d->keepers->n_slots; i++)
		if (keeper_is_owned(d->keepers->slot[i]) && keeper_is_pending(d->keepers->slot[i]))
			return;
	send_list(d, c);
}

void api_list(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		if (keeper_is_owned(d->keepers->slot[i]))
			keeper_freshen(d->keepers->slot[i]);
	conn_wait(d, c, wait_list, "", KEEPER_PATIENCE_MS);
	wait_list(d, c, false);
}

/* Changing from one status to another. */
static bool is_moving(const struct keeper *k)
{
	const char *status = keeper_status(k);

	return strcmp(status, "starting") == 0 || strcmp(status, "stopping") == 0;
}

static void wait_get(struct sbxd *d, struct conn *c, bool late)
{
	const struct keeper *k = keeper_find(d, c->wait_id);
	uint64_t now = clock_mono_ms(), wait_ms = 0;
	const char *wait = api_http_query(&c->http, "wait");

	/* Checked by api_route before. */
	if (wait && str_to_u64(wait, 0, API_MAX_WAIT_MS, &wait_ms) < 0)
		wait_ms = 0;
	if (!late && now < c->deadline_ms &&
		((k && keeper_is_pending(k)) ||
			(wait_ms && (is_moving(k) || starts_place(d->starts, c->wait_id)))))
		return;
	api_reply_ref(d, c, 200, c->wait_id);
}

void api_get(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct keeper *k;

	if (!api_find(d, c, req->ref, &row))
		return;
	k = keeper_find(d, row.spec.id);
	if (k)
		keeper_freshen(k);
	conn_wait(d, c, wait_get, row.spec.id, MAX(req->wait_ms, (uint64_t)KEEPER_PATIENCE_MS));
	wait_get(d, c, false);
}

int api_check_free(struct sbxd *d, const char *name, const char *own_id, struct err *err)
{
	AUTO_ROW struct store_row row = {0};
	int r = store_get(d->store, name, &row, err);

	if (r == -ENOENT || (r == 0 && own_id && strcmp(row.spec.id, own_id) == 0))
		return 0;
	return r < 0 ? r : err_set(err, -EEXIST, "a sandbox named %s already exists", name);
}

/* Its rules name it, so they change with it: both or none. */
static int rename_sandbox(
	struct sbxd *d, const struct spec *old, const struct spec *new, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("%s to %s, %s", old->name, new->name, old->id);
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = "rename",
		.sandbox = new->name,
		.reason = reason};
	int r = api_check_free(d, new->name, old->id, err);

	if (r == 0)
		r = scope_prepare(d, old->name, new->name, &e.count, err);
	if (r == 0)
		r = journal_append(d, &e, err);
	if (r == 0)
		r = store_update(d->store, new, old->generation, err);
	if (r < 0) {
		scope_abandon(d);
		return r;
	}
	r = scope_commit(d, err);
	if (r < 0) {
		AUTO_SPEC struct spec back = {0};

		spec_copy(old, &back);
		back.generation = new->generation + 1;
		(void)!store_update(d->store, &back, new->generation, NULL);
	}
	return r;
}

static bool has_workspace(const struct spec *spec, const struct spec_workspace *w)
{
	for (size_t i = 0; i < spec->n_workspaces; i++)
		if (strcmp(spec->workspaces[i].host, w->host) == 0 &&
			strcmp(spec->workspaces[i].guest, w->guest) == 0 &&
			spec->workspaces[i].ro == w->ro)
			return true;
	return false;
}

static bool has_all(const struct spec *spec, const struct spec *of)
{
	bool all = true;

	for (size_t i = 0; i < of->n_workspaces; i++)
		all = all && has_workspace(spec, &of->workspaces[i]);
	return all;
}

/* A running guest writes its workspaces until it stops: sbxd must not forget them before. The
 * programs that the guest could replace are listed before the registry has the new workspaces. */
static int patch_workspaces(
	struct sbxd *d, const struct spec *old, struct spec *new, char **ret_hint, struct err *err)
{
	bool is_same = old->n_workspaces == new->n_workspaces &&has_all(new, old);
	int r;

	for (size_t i = 0; is_same && i < new->n_workspaces; i++) {
		free(new->workspaces[i].typed);
		new->workspaces[i].typed = NULL;
	}
	if (is_same)
		return 0;
	if (old->staged)
		return err_set(
			err, -EINVAL, "the workspaces of a staged sandbox cannot be changed");
	if (keeper_find(d, old->id) && !has_all(new, old))
		return err_set(err, -EBUSY,
			"sandbox '%s' is running: stop it before a workspace is removed",
			old->name);
	r = share_check(d, new, ret_hint, err);
	for (size_t i = 0; r == 0 && i < new->n_workspaces; i++)
		if (!has_workspace(old, &new->workspaces[i]) &&
			place_check(new->workspaces[i].host, NULL, new->force, err) < 0)
			r = -EINVAL;
	return r < 0 ? r : ref_places_save(new, err);
}

/* What a snapshot was saved with. */
static bool changes_snapshot(const struct spec *old, const struct spec *new)
{
	bool texts = old->n_env == new->n_env && old->n_hide == new->n_hide;

	for (size_t i = 0; texts && i < old->n_env; i++)
		texts = strcmp(old->env[i], new->env[i]) == 0;
	for (size_t i = 0; texts && i < old->n_hide; i++)
		texts = strcmp(old->hide[i], new->hide[i]) == 0;
	return !texts || new->cpus != old->cpus || new->memory != old->memory ||
	       new->accel != old->accel || old->n_workspaces != new->n_workspaces ||
	       !has_all(new, old);
}

static int patch_sandbox(struct sbxd *d, struct conn *c, const struct store_row *row,
	bool *ret_renamed, char **ret_hint, struct err *err)
{
	AUTO_SPEC struct spec new = {0};
	uint64_t want = 0;
	int r = api_decode_patch(c->http.body, &row->spec, &new, &want, err);

	if (r < 0)
		return r;
	if (want && want != row->spec.generation)
		return err_set(err, -ESTALE, "%s has generation %llu, not %llu", row->spec.name,
			(unsigned long long)row->spec.generation, (unsigned long long)want);
	if (spec_matches(&row->spec, &new))
		return 0;
	if (!keeper_find(d, row->spec.id) && kept_is_there(row->spec.id) &&
		changes_snapshot(&row->spec, &new))
		return err_set(err, -EBUSY,
			"sandbox '%s' is suspended, and its snapshot requires the current CPUs, memory, accelerator, workspaces and variables",
			row->spec.name);
	new.generation = row->spec.generation + 1;
	r = spec_check(&new, err);
	if (r == 0)
		r = patch_workspaces(d, &row->spec, &new, ret_hint, err);
	if (r < 0)
		return r;
	r = ports_prepare(d, &row->spec, &new, err);
	if (r < 0)
		return r;
	*ret_renamed = strcmp(new.name, row->spec.name) != 0;
	return *ret_renamed ? rename_sandbox(d, &row->spec, &new, err)
			    : store_update(d->store, &new, row->spec.generation, err);
}

void api_patch(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_ROW struct store_row now = {0};
	AUTO_FREE char *hint = NULL;
	struct err err = {0};
	bool renamed = false;
	int r;

	if (!api_find(d, c, req->ref, &row))
		return;
	r = patch_sandbox(d, c, &row, &renamed, &hint, &err);
	if (r == -ELOOP) {
		api_fail(d, c, 400, "bad-request", err.text, hint);
		return;
	}
	if (r == -EBUSY && kept_is_there(row.spec.id)) {
		api_fail(d, c, 409, "conflict", err.text, "sbx stop --cold SANDBOX");
		return;
	}
	if (!api_succeeded(d, c, r, &err))
		return;
	api_watch_changed(d, row.spec.id);
	if (!api_find(d, c, row.spec.id, &now))
		return;
	if (!renamed)
		ports_reply_row(d, c, &row.spec, &now);
	else
		reload_reply(d, c, 200, api_object(d, &now), row.spec.id);
}

static void wait_delete(struct sbxd *d, struct conn *c, bool late)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", c->wait_id);

	if (vault_link_is_sweeping(d) && !late)
		return;
	if (!keeper_find(d, c->wait_id) && !wipe_is_running(d, c->wait_id)) {
		if (access(dir, F_OK) < 0)
			conn_reply(d, c, 204, NULL);
		else
			api_refuse(d, c, 500, "internal",
				"cannot remove the directory of the sandbox: sbxd tries again when it starts next");
	} else if (late) {
		api_refuse(d, c, 504, "timeout", "the sandbox is still being removed");
	}
}

/* Removes its rules too: they must not apply to a later sandbox of the same name. */
static int remove_row(struct sbxd *d, const struct spec *spec, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("%s, %s", spec->name, spec->id);
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = "rm",
		.sandbox = spec->name,
		.reason = reason};
	struct err why = {0};
	int r = scope_prepare(d, spec->name, NULL, &e.count, err);

	if (r == 0)
		r = store_mark_removed(d->store, spec->id, err);
	if (r < 0) {
		scope_abandon(d);
		return r;
	}
	/* Its row is removed: later failures are reported and do not restore it. */
	if (scope_commit(d, &why) < 0)
		log_error(
			"cannot remove the rules of %s from the policy: %s", spec->name, why.text);
	if (journal_append(d, &e, &why) < 0)
		log_error("cannot record the removal of %s: %s", spec->name, why.text);
	return 0;
}

int api_remove(struct sbxd *d, const struct spec *spec, struct err *err)
{
	struct keeper *k = keeper_find(d, spec->id);
	int r;

	(void)starts_drop(d, spec->id);
	r = remove_row(d, spec, err);
	if (r < 0)
		return r;
	api_watch_removed(d, spec);
	vault_link_sweep(d);
	if (k) {
		/* The disk is removed anyway: the guest needs no time to sync. */
		k->removing = true;
		keeper_stop(d, k, 0);
	} else {
		pool_drop(d, spec->id);
		wipe_start(d, spec->id);
	}
	return 0;
}

void api_delete(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	struct keeper *k;
	int r;

	if (!api_find(d, c, req->ref, &row))
		return;
	k = keeper_find(d, row.spec.id);
	if (k && k->state.sessions && !req->force) {
		api_fail(d, c, 409, "busy", "the sandbox has open sessions", "sbx rm -f SANDBOX");
		return;
	}
	r = api_remove(d, &row.spec, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	conn_wait(d, c, wait_delete, row.spec.id, DELETE_MS);
	wait_delete(d, c, false);
}
