/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds - requests that need a person's approval.
 *
 * How      net.c calls holds_take for an ask that the policy does not decide alone (gate_asked). A
 *          new request opens a hold, which is recorded and sent to sbxd (HELD). The ask waits
 *          without a VERDICT for at most HOLD_INLINE_MS. When a hold is answered, when the policy
 *          changes and when time is up, net.c decides all waiting asks again, so that a yes counts
 *          only under the policy of that moment. An approval is recorded before the ask is allowed.
 *          A hold stays when sbxd exits: each new connection of sbxd gets all of them. If a socket
 *          is full, the rest is sent HOLDS_SEND_MS later. When the last client has left that waits
 *          for a hold, the hold is withdrawn (holds_leave). A link gets its VERDICT at once:
 *          whether the user is asked. After the answer it is removed; sbx opens it (src/sbx/open).
 * Trust    The digest and the texts come from the keeper's own decision. An answer comes from sbxd,
 *          and only from the one that may pass a policy.
 * Owns     The table of holds.
 * Limits   KEEPER_MAX_HELD asks wait; others are refused at once, with the id of the hold. Fewer
 *          than the asks that edge sends at the same time, so that others still pass.
 * Never    Allows a request when the approval cannot be recorded.
 * See      lib/rules/hold/hold.h, hold_test.c
 */
#pragma once

#include "lib/os/ipc/edge_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/hold/hold_msg.h"
#include "src/keeper/link/link.h"

#define HOLDS_SEND_MS 20
#define HOLDS_CALLBACK_MS (10 * 60 * 1000)
#define HOLDS_CALLBACK_CONNS 4 /* the request of the browser, and redirections of the guest */

struct keeper;

/* A port of the guest that an opened link named in its redirect_uri. */
struct callback {
	uint16_t port;
	unsigned n_left; /* connections */
	uint64_t until_ms;
};

struct keeper_holds {
	struct callback callbacks[HOLD_MAX_LINKS];
	struct holds table;
	uint64_t unsent[KEEPER_MAX_LINKS]; /* a bit for each place of the table */
	struct loop_timer timer, send_timer;
	char passed[HOLD_ID]; /* the request of the last HOLDS_PASS */
};

enum holds_next {
	HOLDS_PASS,   /* approved and recorded: it can be allowed */
	HOLDS_WAIT,   /* it waits, without a VERDICT */
	HOLDS_REFUSE, /* *ret is the VERDICT */
};

void holds_init(struct keeper *k);
void holds_done(struct keeper *k);
/* The reason for a client that left while its request waited. */
#define HOLDS_LEFT "needs approval, but the client has left: it closed the connection meanwhile"

/* since_ms: when a request that waits came; 0: this is a new one. */
enum holds_next holds_take(struct keeper *k, const struct hold_text *what,
	const struct edge_ask *ask, uint64_t since_ms, struct edge_verdict *ret);
/* Whether a person has approved such a request already. */
bool holds_passes(struct keeper *k, const struct hold_text *what);
/* The client of a request that waited has left. If nothing else waits for its hold, the hold is
 * withdrawn: it cannot be answered any more. */
void holds_leave(struct keeper *k, const uint8_t digest[SHA256_BYTES]);
/* A URL that the user is asked to open. *ret: whether it is shown, and a sentence for the guest. */
void holds_take_link(struct keeper *k, const struct edge_ask *ask, struct edge_verdict *ret);
/* Whether sbx may connect to this port of the guest now, for the callback of an opened link. Counts
 * the connection. */
bool holds_use_callback(struct keeper *k, uint16_t port);
/* An ask began to wait; or could not, because too many do: then *ret is its VERDICT. */
void holds_arm(struct keeper *k);
void holds_refuse_crowd(struct keeper *k, const struct hold_text *what, const struct edge_ask *ask,
	struct edge_verdict *ret);
/* Other rules apply from now on. */
void holds_on_policy(struct keeper *k);
void holds_set_limits(struct keeper *k, uint32_t max_open, uint32_t max_hour);
/* ANSWER of sbxd. */
int holds_on_answer(struct keeper *k, struct link *l, const struct ipc_msg *msg);
/* A new connection of sbxd gets all holds. */
void holds_on_link(struct keeper *k);
void holds_on_timer(struct keeper *k);
void holds_on_send_timer(struct keeper *k);
