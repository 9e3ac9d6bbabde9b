/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "src/sbxd/disk/ballast.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>
#include "src/sbxd/disk/kept.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "src/sbxd/keepers/ports.h"
#include "src/sbxd/sbxd.h"

static api_fn api_version, api_shutdown;

static api_fn *const calls[] = {
	[API_VERSION] = api_version,
	[API_LIST] = api_list,
	[API_CREATE] = api_create,
	[API_GET] = api_get,
	[API_PATCH] = api_patch,
	[API_DELETE] = api_delete,
	[API_START] = api_start,
	[API_STOP] = api_stop,
	[API_EXEC] = api_exec,
	[API_STATS] = api_stats,
	[API_WATCH] = api_watch,
	[API_SHUTDOWN] = api_shutdown,
	[API_POLICY_GET] = api_policy_get,
	[API_POLICY_PUT] = api_policy_put,
	[API_POLICY_RESET] = api_policy_reset,
	[API_POLICY_CHECK] = api_policy_check,
	[API_RULE_ADD] = api_rule_add,
	[API_RULE_RM] = api_rule_rm,
	[API_RULES_RM] = api_rules_rm,
	[API_RELOAD] = api_reload,
	[API_POOL] = api_pool,
	[API_SECRETS] = api_secrets,
	[API_SECRET_PUT] = api_secret_put,
	[API_SECRET_RM] = api_secret_rm,
	[API_SECRET_STATUS] = api_secret_status,
	[API_SECRET_UNLOCK] = api_secret_unlock,
	[API_SECRET_SCAN] = api_secret_scan,
	[API_SERVICES] = api_services,
	[API_PORTS] = api_ports,
	[API_PORT_ADD] = api_port_add,
	[API_PORT_RM] = api_port_rm,
	[API_FREEZE] = api_freeze,
	[API_OWN] = api_own,
	[API_TEMPLATE_RM] = api_template_rm,
	[API_TEMPLATE_COLLECT] = api_template_collect,
	[API_AUDIT_PRUNE] = api_audit_prune,
};
static_assert(ARRAY_LEN(calls) == API_N_CALLS, "a function for each call");

void api_reply_json(struct sbxd *d, struct conn *c, int status, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	/* Everything in it was UTF-8 when it came in, or was made so. */
	assert(text);
	conn_reply(d, c, status, text);
	free(text);
}

json_t *api_text(const char *s)
{
	json_t *j = json_string(s);

	return j ? j : json_string("(text that is not UTF-8)");
}

void api_fail(struct sbxd *d, struct conn *c, int status, const char *code, const char *message,
	const char *hint)
{
	json_t *e = json_object(), *o = json_object();

	json_object_set_new(e, "code", json_string(code));
	json_object_set_new(e, "message", api_text(message));
	if (hint)
		json_object_set_new(e, "hint", api_text(hint));
	json_object_set_new(o, "error", e);
	api_reply_json(d, c, status, o);
}

void api_refuse(struct sbxd *d, struct conn *c, int status, const char *code, const char *message)
{
	api_fail(d, c, status, code, message, NULL);
}

void api_fail_errno(struct sbxd *d, struct conn *c, int r, const struct err *err)
{
	static const struct {
		int r, status;
		const char *code;
	} rows[] = {
		{-EINVAL, 400, "bad-request"},
		{-ERANGE, 400, "bad-request"},
		{-E2BIG, 413, "too-large"},
		{-ENOENT, 404, "not-found"},
		{-EEXIST, 409, "conflict"},
		{-EBUSY, 409, "conflict"},
		{-ESTALE, 409, "stale"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].r == r) {
			api_refuse(d, c, rows[i].status, rows[i].code, err_text(err, r));
			return;
		}
	}
	log_error("%s", err_text(err, r));
	api_refuse(d, c, 500, "internal", err_text(err, r));
}

bool api_find(struct sbxd *d, struct conn *c, const char *ref, struct store_row *ret)
{
	struct err err = {0};
	int r = store_get(d->store, ref, ret, &err);

	if (r == -ENOENT)
		api_fail(d, c, 404, "not-found", err.text, "sbx ls");
	else if (r < 0)
		api_fail_errno(d, c, r, &err);
	return r == 0;
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static void add_times(json_t *o, const struct store_row *row, const struct keeper *k)
{
	json_object_set_new(o, "created_at", number(row->created_at));
	json_object_set_new(o, "started_at", number(row->started_at));
	json_object_set_new(o, "stopped_at", number(row->stopped_at));
	json_object_set_new(o, "last_used_at",
		number(k ? MAX(k->used_stamp_ms, row->last_used_at) : row->last_used_at));
}

static void add_running(json_t *o, const struct keeper *k)
{
	char detail[KEEPER_MAX_TEXT + 64];

	keeper_detail(k, detail, sizeof(detail));
	json_object_set_new(o, "detail", api_text(detail));
	json_object_set_new(o, "progress", number(k->state.progress));
	json_object_set_new(o, "sessions", number(k->state.sessions));
	json_object_set_new(o, "boot_ms", number(k->state.boot_ms));
	json_object_set_new(o, "start", api_text(keeper_how_name(k->state.how)));
	json_object_set_new(o, "cold_why", api_text(k->state.cold_why));
	json_object_set_new(o, "keeper_pid", number((uint64_t)k->pid));
	json_object_set_new(o, "qemu_pid", number(k->state.qemu_pid));
	if (k->state.accel[0])
		json_object_set_new(o, "accel", api_text(k->state.accel));
}

static void add_stopped(json_t *o, const struct store_row *row)
{
	static const char *const zero[] = {
		"progress", "sessions", "boot_ms", "keeper_pid", "qemu_pid"};

	json_object_set_new(o, "detail", api_text(row->last_error));
	json_object_set_new(o, "start", json_string(""));
	json_object_set_new(o, "cold_why", json_string(""));
	for (size_t i = 0; i < ARRAY_LEN(zero); i++)
		json_object_set_new(o, zero[i], json_integer(0));
}

json_t *api_object(struct sbxd *d, const struct store_row *row)
{
	const struct keeper *k = keeper_find(d, row->spec.id);
	json_t *o = spec_to_json(&row->spec);

	bool is_kept = !k && kept_is_there(row->spec.id);

	json_object_set_new(o, "status", json_string(is_kept ? "suspended" : keeper_status(k)));
	if (is_kept)
		kept_describe(o, row->spec.id);
	add_times(o, row, k);
	if (k)
		add_running(o, k);
	else
		add_stopped(o, row);
	json_object_set_new(o, "ports", ports_to_json(d, row));
	json_object_set_new(o, "own_services", api_own_services(row->spec.id));
	return o;
}

void api_reply_row(struct sbxd *d, struct conn *c, int status, const struct store_row *row)
{
	api_reply_json(d, c, status, api_object(d, row));
}

void api_reply_ref(struct sbxd *d, struct conn *c, int status, const char *ref)
{
	AUTO_ROW struct store_row row = {0};

	if (api_find(d, c, ref, &row))
		api_reply_row(d, c, status, &row);
}

static void api_version(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	unsigned ready, size;

	pool_count(d, &ready, &size);
	api_reply_json(d, c, 200,
		json_pack("{s:s,s:s,s:i,s:i,s:{s:i,s:i}}", "version", SBX_VERSION, "build",
			SBX_VERSION, "pid", (int)getpid(), "api", 1, "pool", "size", (int)size,
			"ready", (int)ready));
}

static void api_shutdown(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	d->quit = true;
	conn_reply(d, c, 204, NULL);
}

static void call(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	/* What frees space, or forbids something. */
	bool is_needed = req->call == API_DELETE || req->call == API_STOP ||
			 req->call == API_POLICY_PUT || req->call == API_POLICY_RESET ||
			 req->call == API_RULE_ADD || req->call == API_RULES_RM ||
			 req->call == API_RULE_RM || req->call == API_AUDIT_PRUNE;
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);

	ballast_look(state, is_needed);
	calls[req->call](d, c, req);
}

void api_dispatch(struct sbxd *d, struct conn *c)
{
	struct api_request req = {0};
	struct err err = {0};
	int status = api_route(&c->http, &req, &err);

	if (status == 404)
		api_refuse(d, c, 404, "not-found", err.text);
	else if (status)
		api_refuse(d, c, status, "bad-request", err.text);
	else
		call(d, c, &req);
}
