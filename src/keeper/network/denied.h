/* SPDX-License-Identifier: Apache-2.0 */
/*
 * denied - tells the guest why its connections were refused: /run/sbx/denied.
 *
 * How      Each refusal of the network becomes the text that lib/wire/http/deny.h writes: the
 *          target, the reason, and the command to type on the host. The last DENIED_MAX different
 *          targets are kept, and all of them are sent to the guest in a /denied, a moment after a
 *          new one came and at most once in DENIED_PAUSE_MS. A program that only saw "403" or
 *          "connection refused" has the reason there (sbx-why).
 * Trust    What was asked comes from edge, possibly compromised: the text is printable and bounded
 *          by lib/wire/http/deny.h. The guest learns what each refusal says to it anyway.
 * Owns     The texts.
 * Limits   DENIED_MAX texts of DENIED_TEXT bytes.
 * See      proto/PROTOCOL.guest, src/guest/net/why.h, denied_test.c
 */
#pragma once

#include "lib/os/ipc/edge_chan.h"
#include "lib/os/loop/loop.h"

#define DENIED_MAX 24
#define DENIED_TEXT 2048
#define DENIED_WAIT_MS 50
#define DENIED_PAUSE_MS 1000

struct keeper;

struct denied {
	char *texts[DENIED_MAX]; /* the oldest first */
	size_t n;
	bool is_new;	/* the guest has not got all of them */
	bool is_asking; /* it has not answered the last one */
	uint64_t sent_ms;
	struct loop_timer timer;
};

void denied_note(struct keeper *k, const struct edge_ask *ask, const struct edge_verdict *verdict);
void denied_on_timer(struct keeper *k);
