/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload_reply - replies to a client when the keepers have applied a change.
 *
 * How      reload_reply notifies the keepers (src/sbxd/keepers/reload.h) and replies when all of
 *          them have answered, or after RELOAD_MS with the names of those that have not.
 * Trust    As keepers.h: a keeper may not reply, or refuse.
 * Owns     The answer of a connection while it waits.
 * Limits   RELOAD_MS.
 * See      tests/api/test_policy.py
 */
#pragma once

#include "src/sbxd/http/http.h"
#include "lib/base/clock.h"

#define RELOAD_MS clock_limit_ms(4000)

/* Notifies the keeper of `id`, or with NULL all of them, then replies with `answer` (takes
 * ownership), with `not_taken` added. */
void reload_reply(
	struct sbxd *d, struct conn *c, int status, struct json_t *answer, const char *id);
