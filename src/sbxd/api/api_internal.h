/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_internal - functions that the files of api share: replies, the sandbox object, the calls.
 */
#pragma once

#include "api.h"
#include "src/sbxd/http/http.h"
#include "lib/vm/store/store.h"

struct json_t;

/* api_reply.c. `hint` is the command to run next, or NULL. */
void api_fail(struct sbxd *d, struct conn *c, int status, const char *code, const char *message,
	const char *hint);
void api_refuse(struct sbxd *d, struct conn *c, int status, const char *code, const char *message);
/* From a negative errno of the store, settings or decoders. */
void api_fail_errno(struct sbxd *d, struct conn *c, int r, const struct err *err);
/* Returns true if r is not an error; otherwise it has sent the error reply. */
bool api_succeeded(struct sbxd *d, struct conn *c, int r, const struct err *err) MUST_CHECK;
/* The same as an object, for a later reply with *ret_status. -ECANCELED: a start failed. */
struct json_t *api_error(int r, const struct err *err, int *ret_status);
/* Converts external text to a JSON string; invalid UTF-8 is replaced. */
struct json_t *api_text(const char *s);
void api_reply_json(struct sbxd *d, struct conn *c, int status, struct json_t *o);
/* The row of req->ref; replies and returns false if it does not exist. */
bool api_find(struct sbxd *d, struct conn *c, const char *ref, struct store_row *ret);

/* api_object.c: the sandbox object from a row and the state of its keeper. */
struct json_t *api_object(struct sbxd *d, const struct store_row *row);
void api_reply_row(struct sbxd *d, struct conn *c, int status, const struct store_row *row);
/* Reads the row again and sends it; 404 if it no longer exists. */
void api_reply_ref(struct sbxd *d, struct conn *c, int status, const char *ref);
/* A port with its state: open, failed (and reason), starting, stopped. */
struct json_t *api_port_to_json(
	struct sbxd *d, const char *id, const struct keeper *k, const struct spec_port *p);
struct json_t *api_ports_to_json(struct sbxd *d, const struct store_row *row);

/* api_sandbox.c. -EEXIST when a sandbox other than own_id (NULL: any) has the name. */
int api_check_free(
	struct sbxd *d, const char *name, const char *own_id, struct err *err) MUST_CHECK;
/* Removes a sandbox with its rules; its keeper and its files follow. */
int api_remove(struct sbxd *d, const struct spec *spec, struct err *err) MUST_CHECK;
/* api_run.c. Starts a keeper for a sandbox without one, or lets the start wait (starts.h). _now:
 * does not wait; spec gets the decisions of the start. */
int api_launch(struct sbxd *d, struct spec *spec, enum spec_accel wish, bool cold,
	struct err *err) MUST_CHECK;
int api_launch_now(struct sbxd *d, struct spec *spec, enum spec_accel wish, bool cold,
	struct err *err) MUST_CHECK;

/* api_template.c. Completes an interrupted rewind: disks between two states must not be used. */
int api_settle_disks(const char *id, struct err *err) MUST_CHECK;
/* The same, and returns the fd of the lock that a keeper would hold. -EBUSY if a keeper holds it,
 * or the sandbox is suspended. */
int api_hold_stopped(const char *id, struct err *err) MUST_CHECK;
/* Returns false if it is not suspended; otherwise it has sent 409 with the hint. */
bool api_is_suspended(struct sbxd *d, struct conn *c, const char *id, const char *hint);
/* api_checkpoint.c. The disks are frozen for a checkpoint; c NULL: the client has left. */
void api_checkpoint_frozen(
	struct sbxd *d, const struct keeper *k, struct conn *c, const struct keeper_frozen *f);

/* api_holds.c: a request for approval as JSON. */
struct json_t *api_hold_to_json(struct sbxd *d, const struct keeper *k, const struct held *h);
/* The keeper's answer to the ANSWER that this connection waits for; false: it waits for none. */
bool api_hold_done(struct sbxd *d, struct conn *c, const struct keeper_done *done);

/* api_watch.c: to every watcher. */
void api_watch_hold(struct sbxd *d, struct json_t *hold, bool gone);
void api_watch_removed(struct sbxd *d, const struct spec *spec);
/* Sends more of the snapshot; false if the connection was closed. */
bool api_watch_fill(struct sbxd *d, struct conn *c);

/* The calls: the table is in api.c. */
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
api_fn api_checkpoint, api_checkpoints, api_checkpoint_rm, api_rewind;
api_fn api_audit_prune;
api_fn api_guard, api_guard_done, api_stage;
api_fn api_holds, api_hold, api_hold_answer;
