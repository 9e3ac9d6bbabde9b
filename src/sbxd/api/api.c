/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <assert.h>
#include <jansson.h>
#include <unistd.h>
#include "api_internal.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/metrics/metrics.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "lib/base/fs/paths.h"

static api_fn api_version, api_shutdown, api_metrics;

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
	[API_CHECKPOINT] = api_checkpoint,
	[API_CHECKPOINTS] = api_checkpoints,
	[API_REWIND] = api_rewind,
	[API_CHECKPOINT_RM] = api_checkpoint_rm,
	[API_OWN] = api_own,
	[API_TEMPLATE_RM] = api_template_rm,
	[API_TEMPLATE_COLLECT] = api_template_collect,
	[API_AUDIT_PRUNE] = api_audit_prune,
	[API_GUARD] = api_guard,
	[API_GUARD_DONE] = api_guard_done,
	[API_STAGE] = api_stage,
	[API_HOLDS] = api_holds,
	[API_HOLD] = api_hold,
	[API_HOLD_ANSWER] = api_hold_answer,
	[API_METRICS] = api_metrics,
};
static_assert(ARRAY_LEN(calls) == API_N_CALLS, "a function for each call");

static void api_version(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	unsigned ready, size;

	pool_count(d, &ready, &size);
	api_reply_json(d, c, 200,
		json_pack("{s:s,s:s,s:i,s:i,s:s,s:{s:i,s:i}}", "version", SBX_VERSION, "build",
			SBX_VERSION, "pid", (int)getpid(), "api", 1, "trace", trace_words(), "pool",
			"size", (int)size, "ready", (int)ready));
}

static void api_shutdown(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	d->quit = true;
	conn_reply(d, c, 204, NULL);
}

static void api_metrics(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	int r = metrics_print(d, &text, &err);

	if (api_succeeded(d, c, r, &err))
		conn_reply_text(d, c, METRICS_TYPE, text);
}

static void run_call(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	/* Calls that free disk space or restrict access. */
	bool is_needed = req->call == API_DELETE || req->call == API_STOP ||
			 req->call == API_POLICY_PUT || req->call == API_POLICY_RESET ||
			 req->call == API_RULE_ADD || req->call == API_RULES_RM ||
			 req->call == API_RULE_RM || req->call == API_AUDIT_PRUNE;
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);

	ballast_look(state, is_needed);
	calls[req->call](d, c, req);
}

static void dispatch_request(struct sbxd *d, struct conn *c)
{
	struct api_request req = {0};
	struct err err = {0};
	int status = api_route(&c->http, &req, &err);

	if (status == 404)
		api_refuse(d, c, 404, "not-found", err.text);
	else if (status)
		api_refuse(d, c, status, "bad-request", err.text);
	else
		run_call(d, c, &req);
}

static void refuse_malformed(struct sbxd *d, struct conn *c, int status, const char *why)
{
	api_refuse(d, c, status, "bad-request", why);
}

const struct conn_ops api_conn_ops = {
	.on_request = dispatch_request,
	.on_malformed = refuse_malformed,
	.on_room = api_watch_fill,
};
