/* SPDX-License-Identifier: Apache-2.0 */
/*
 * denied - lists what was denied for the guest: /run/sbx/denied.
 *
 * How      lib/wire/http/deny.h formats each blocked connection: the target, the reason, and the
 *          command to run on the host. The list keeps the last DENIED_MAX different targets. A POST
 *          /denied sends the whole list to the guest, DENIED_WAIT_MS after a new entry and at most
 *          once per DENIED_PAUSE_MS. In the guest, sbx-why prints the reason for a plain "403" or
 *          "connection refused". The guard of the share adds denied writes.
 * Trust    Input: targets from edge, possibly compromised. lib/wire/http/deny.h limits the text and
 *          makes it printable. The guest gets only the texts that its blocked requests got.
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
	bool is_new;	/* the guest does not have all of them */
	bool is_asking; /* the guest has not answered the last POST */
	uint64_t sent_ms;
	struct loop_timer timer;
};

/* What a guest reads about a refusal: lines. False: buf is too small. */
bool denied_print(
	const struct edge_ask *ask, const struct edge_verdict *verdict, char *buf, size_t size);
void denied_note(struct keeper *k, const struct edge_ask *ask, const struct edge_verdict *verdict);
/* Another text that ends in a newline; its first line names it. */
void denied_add(struct keeper *k, const char *text);
void denied_on_timer(struct keeper *k);
