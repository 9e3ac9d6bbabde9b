/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload - tells running keepers that policy or network settings changed, and who has not heard.
 *
 * How      Every change has a number. A keeper has one RELOAD under way at most; changes that come
 *          meanwhile are told with the next one. reload_reply answers a client when all keepers
 *          that ran at that moment have said DONE, or after RELOAD_MS with the names of those
 *          that have not. A keeper that sbxd found again after a restart is told at its HELLO.
 * Trust    As keepers.h: a keeper may say nothing, or no.
 * Owns     The answer of a connection while it waits.
 * Limits   RELOAD_MS.
 * See      lib/os/ipc/keeper_chan.h, tests/api/test_policy.py
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/clock.h"

#define RELOAD_MS clock_limit_ms(4000)

struct conn;
struct json_t;
struct keeper;
struct sbxd;

/* Tells the keeper of `id`, or with NULL all of them, then replies with `answer` (taken over), to
 * which `not_taken` is added. */
void reload_reply(
	struct sbxd *d, struct conn *c, int status, struct json_t *answer, const char *id);
/* At the first HELLO of a keeper that another sbxd started. */
void reload_adopted(struct sbxd *d, struct keeper *k);
/* Sends what is due, if it can be sent now. */
void reload_push(struct sbxd *d, struct keeper *k);
/* True when this was the answer to a RELOAD. */
bool reload_on_done(struct sbxd *d, struct keeper *k, uint32_t ask_id, int code, const char *text);
