/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret_api - credentials through sbxd: finding services and credentials, setting one, reporting
 * the result.
 *
 * How      One call each. A value is passed as a descriptor with the request (secret_value.h).
 * Trust    The user's arguments; texts in answers are printed through ui.h.
 * Owns     JSON answers belong to the caller.
 * Limits   SECRET_TIMEOUT_MS for a call: sbxd's own bounds for the vault are shorter.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include "lib/client/api/api.h"
#include "lib/client/cli/opt.h"
#include "secret_value.h"

#define SECRET_TIMEOUT_MS 60000
#define SECRET_MAX_WORDS 512

/* A list inside *ret_answer: "services" and "faults", or "secrets". */
int secret_services(json_t **ret_answer, struct problem *p) MUST_CHECK;
int secret_list(json_t **ret_answer, struct problem *p) MUST_CHECK;
/* Returns the service of that name in an answer; else an error with the nearest one. */
int secret_find_service(
	const json_t *answer, const char *name, const json_t **ret, struct problem *p) MUST_CHECK;
/* The credential of that name and scope (NULL: global) in an answer, or NULL. */
const json_t *secret_find(const json_t *answer, const char *name, const char *sandbox);
/* Whether it applies to a sandbox (name or id): its own, or a global one without override. */
bool secret_is_bound(const json_t *answer, const json_t *secret, const char *sandbox);
/* The body and the name of the password of network.proxy, whose user is in the setting. */
int secret_make_proxy(
	const char *sandbox, const char **ret_name, json_t **ret, struct problem *p) MUST_CHECK;

/* -g and --sandbox: the sandbox, or NULL for all. */
int secret_scope(
	const struct opts *o, const char *verb, const char **ret, struct problem *p) MUST_CHECK;
/* Whether it exists; true for NULL. */
int secret_check_sandbox(const char *sandbox, struct problem *p) MUST_CHECK;
/* --ref, --command and --refresh in the form of the API; *ret is NULL if there is none. */
int secret_take_ref(const struct opts *o, const char *verb, const char *refresh, json_t **ret,
	struct problem *p) MUST_CHECK;
/* If one exists: prompts, or reports that --force is required. */
int secret_may_replace(
	const char *name, const char *sandbox, bool force, struct problem *p) MUST_CHECK;
/* Fills it from the terminal or from stdin, and checks it. */
int secret_get_value(
	const char *name, const char *shape, struct secret_value *v, struct problem *p) MUST_CHECK;
/* value NULL: body has a reference. */
int secret_put(const char *name, json_t *body, const struct secret_value *value, json_t **ret,
	struct problem *p) MUST_CHECK;
/* Prints what was set, its scope, and the hosts that the policy still denies. */
void secret_say_set(const json_t *answer, const char *sandbox);
/* "a, b, c", on the heap; "-" for none. */
char *secret_join(const json_t *list, const char *separator);
