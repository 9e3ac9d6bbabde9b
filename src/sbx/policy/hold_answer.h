/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_answer - the list of requests from sbxd, and answers to them.
 *
 * How      One API call each. A request is named by ID or SANDBOX/ID.
 * Trust    As lib/client/api/api.h.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/ui.h"

#define HOLD_ANSWER_FOR_S (30 * 60) /* of the prompt and of the full screen */

int hold_list(json_t **ret, struct problem *p) MUST_CHECK;
int hold_get(const char *ref, json_t **ret, struct problem *p) MUST_CHECK;
/* choice: "once", "for", "always", "no"; seconds of "for"; reason NULL: none. The digest is the one
 * of `hold`, which was displayed. */
int hold_answer_send(const json_t *hold, const char *choice, uint64_t seconds, const char *reason,
	json_t **ret, struct problem *p) MUST_CHECK;
