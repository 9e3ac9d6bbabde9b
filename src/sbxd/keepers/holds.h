/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds - requests of sandboxes that wait for a person's approval, as the keepers report them.
 *
 * How      A keeper sends HELD for each, and all of them at each connection, so the next sbxd has
 *          them too. The keeper decides about every answer; this table is what clients see. on_hold
 *          is called when a hold was opened, answered or (gone) removed; without a hold when the
 *          keeper is gone, and all of its holds.
 * Trust    As keepers.h: a keeper may send false data. Texts are shown only.
 * Owns     keeper.holds
 * Limits   HOLD_MAX of a keeper.
 * See      lib/rules/hold/hold_msg.h, tests/cli/test_approve.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/rules/hold/hold_msg.h"

struct keeper;

struct held {
	uint64_t got_ms; /* when the times in msg were right */
	struct hold_msg msg;
};

struct keeper_holds {
	struct held *place[HOLD_MAX]; /* NULL: free */
};

/* Calls fn for each hold of every sandbox. */
void holds_each(struct sbxd *d, void (*fn)(void *arg, const struct keeper *k, const struct held *h),
	void *arg);
/* Sends the answer. Returns the number of the request, 0 if it could not be sent. */
uint32_t holds_answer(struct sbxd *d, struct keeper *k, const struct hold_reply *reply);
