/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox - operations of several verbs: find, create, start and stop a sandbox.
 *
 * How      Thin over api.h. Waiting shows progress on a terminal and is bounded by
 *          SANDBOX_START_MS; a start with software emulation prints a warning every time.
 * Trust    As api.h.
 * Owns     JSON objects belong to the caller.
 * Limits   SANDBOX_START_MS, SANDBOX_STOP_MS.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include "api.h"

#define SANDBOX_START_MS 300000
#define SANDBOX_STOP_MS 60000
#define SANDBOX_SUSPEND_MS 310000 /* memory is written, and hashed */
#define SANDBOX_TEMPLATE "debian"
#define SANDBOX_PAUSED "paused (disk full)" /* the status `paused`, for people */

/* The call with REF quoted into "/v1/sandboxes/REF" + tail. */
int sandbox_call(const char *method, const char *ref, const char *tail, json_t *body,
	unsigned timeout_ms, json_t **ret, struct problem *p) MUST_CHECK;
int sandbox_get(const char *ref, json_t **ret, struct problem *p) MUST_CHECK;
/* All of them, a JSON array inside *ret. */
int sandbox_list(json_t **ret, struct problem *p) MUST_CHECK;
/* From now on starts are to be boots (--cold). */
void sandbox_want_cold(void);
/* Creates a sandbox with its rules and starts it, in one call: it runs, or nothing is left of it.
 * Adds `start` to the body. */
int sandbox_create(json_t *body, json_t **ret, struct problem *p) MUST_CHECK;
/* Starts it when it is not running and waits until it is. accel NULL: its own. */
int sandbox_start(const char *ref, const char *accel, json_t **ret, struct problem *p) MUST_CHECK;
int sandbox_remove(const char *ref, bool force, struct problem *p) MUST_CHECK;
bool sandbox_is(const json_t *sandbox, const char *status);
