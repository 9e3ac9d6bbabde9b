/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - what sbxd answers: PROTOCOL.api, one function a call.
 *
 * How      api_dispatch finds the call (api_route.h) and runs its function. A function answers at
 *          once, or makes the connection wait (conn_wait) for a keeper; the keepers' code calls the
 *          api_on_* functions when an answer comes.
 * Trust    As conn.h. Every reply is built here; text of a keeper goes into it as a JSON string.
 * Never    Waits without a deadline, or touches the guest's bytes: an exec's connection is passed
 *          on.
 * See      proto/PROTOCOL.api, api_sandbox.c, api_run.c, api_watch.c, api_policy.c,
 *          api_secret.c, api_own.c, api_template.c, api_audit.c
 */
#pragma once

#include "src/sbxd/http/api_route.h"
#include "src/sbxd/http/conn.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/vm/store/store.h"

struct json_t;
struct sbxd;

void api_dispatch(struct sbxd *d, struct conn *c);
/* Replies. `hint` is what to type next, or NULL. */
void api_fail(struct sbxd *d, struct conn *c, int status, const char *code, const char *message,
	const char *hint);
void api_refuse(struct sbxd *d, struct conn *c, int status, const char *code, const char *message);
/* From a negative errno of the store, settings or decoders. */
void api_fail_errno(struct sbxd *d, struct conn *c, int r, const struct err *err);
/* Text of the outside as JSON: what is not UTF-8 cannot stand there and is replaced. */
struct json_t *api_text(const char *s);
void api_reply_json(struct sbxd *d, struct conn *c, int status, struct json_t *o);
void api_reply_row(struct sbxd *d, struct conn *c, int status, const struct store_row *row);
/* Reads the row again and sends it; 404 when it is gone. */
void api_reply_ref(struct sbxd *d, struct conn *c, int status, const char *ref);
/* The sandbox object of a row and of what its keeper says. */
struct json_t *api_object(struct sbxd *d, const struct store_row *row);
/* The services for which the sandbox may use its own credentials; api_own.c. */
struct json_t *api_own_services(const char *id);
/* The row of req->ref, or a reply and false. */
bool api_find(struct sbxd *d, struct conn *c, const char *ref, struct store_row *ret);

typedef void api_fn(struct sbxd *d, struct conn *c, const struct api_request *req);
api_fn api_list, api_create, api_get, api_patch, api_delete;
api_fn api_start, api_stop, api_exec, api_stats;
api_fn api_watch, api_reload, api_pool;
api_fn api_policy_get, api_policy_put, api_policy_reset, api_policy_check;
api_fn api_rule_add, api_rule_rm, api_rules_rm;
api_fn api_secrets, api_secret_put, api_secret_rm, api_secret_status, api_secret_unlock;
api_fn api_secret_scan;
api_fn api_services, api_own;
api_fn api_ports, api_port_add, api_port_rm;
api_fn api_freeze, api_template_rm, api_template_collect;
api_fn api_audit_prune;

void api_on_done(struct sbxd *d, struct conn *c, int code, const char *text);
void api_on_frozen(struct sbxd *d, struct conn *c, const struct keeper_frozen *frozen);
int api_on_stats(struct sbxd *d, struct conn *c, const struct keeper_stats *stats) MUST_CHECK;

/* To every watcher. */
void api_watch_changed(struct sbxd *d, const char *id);
void api_watch_removed(struct sbxd *d, const struct spec *spec);
/* More of the snapshot; false when the connection was closed. */
bool api_watch_fill(struct sbxd *d, struct conn *c);
