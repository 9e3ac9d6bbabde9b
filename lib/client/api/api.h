/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - calls to sbxd: one HTTP/1.1 request, one JSON answer, on the Unix socket of this user.
 *
 * How      api_call connects, starts sbxd if it does not run (daemon.h), sends the request and
 *          waits until the timeout. api_stream requests an exec stream and returns the connection.
 *          At the first call of a process the build of sbxd is compared with our own, and an sbxd
 *          of another build is replaced; sandboxes do not notice.
 * Trust    sbxd is the same user's; its answers are bounded anyway, and texts in them may be a
 *          guest's.
 * Owns     The JSON of an answer belongs to the caller (api_json_free through AUTO_JSON).
 * Limits   API_MAX_ANSWER, API_TIMEOUT_MS, API_TRIES.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/ui.h"
#include "lib/base/clock.h"

#define API_MAX_HEAD 16384
#define API_MAX_ANSWER (16u << 20)
#define API_TIMEOUT_MS clock_limit_ms(10000)
#define API_TRIES 3 /* of a GET whose connection is lost */
#define API_TICK_MS 250

void api_json_free(json_t **j);
#define AUTO_JSON CLEANUP(api_json_free)

/* body is borrowed and may be NULL. *ret_answer is NULL when the answer has no body; ret_answer may
 * be NULL. -ENOENT for 404, -EBUSY for 409 busy, -EEXIST for other 409, -ETIMEDOUT, -EIO. */
int api_call(const char *method, const char *path, json_t *body, unsigned timeout_ms,
	json_t **ret_answer, struct problem *p) MUST_CHECK;
/* As api_call with GET, for an answer that is not JSON. *ret_text is on the heap. */
int api_fetch(const char *path, unsigned timeout_ms, char **ret_text, struct problem *p) MUST_CHECK;
/* Called while an answer is awaited, every API_TICK_MS; -EINTR ends the call, 1 starts its timeout
 * again. */
typedef int api_tick_fn(void *arg);
/* As api_call for a call that has no effect without an answer: it is repeated when the connection
 * is lost. After -EINTR *ret_answer may be set: the answer was on its way. */
int api_call_whole(const char *method, const char *path, json_t *body, unsigned timeout_ms,
	api_tick_fn *tick, void *arg, json_t **ret_answer, struct problem *p) MUST_CHECK;
/* As api_call, with a descriptor to pass, which stays the caller's, or -1. */
int api_call_passing(const char *method, const char *path, json_t *body, int pass_fd,
	unsigned timeout_ms, json_t **ret_answer, struct problem *p) MUST_CHECK;
/* As api_call, and never starts or replaces sbxd: -ECONNREFUSED if it does not run. */
int api_peek(const char *method, const char *path, unsigned timeout_ms, json_t **ret_answer,
	struct problem *p) MUST_CHECK;
/* Gives the connected fd after 101, at the first byte of the stream. */
int api_stream(const char *ref, unsigned timeout_ms, struct problem *p) MUST_CHECK;
/* The same for a port of the guest that an opened link names in its redirect_uri. */
int api_callback(const char *ref, unsigned port, unsigned timeout_ms, struct problem *p) MUST_CHECK;

/* Members with a default for what is missing or of another type. */
const char *api_str(const json_t *o, const char *key);
long long api_int(const json_t *o, const char *key);
/* Pretty, sorted as given, with times as form.h has them and a newline, on stdout. */
void api_print(const json_t *j);
/* A name as a part of a path: percent-encoded, on the heap. */
char *api_quote(const char *s);
