/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard - records what the supervisor of the share denied or reported.
 *
 * How      lib/vm/share/guard.h decides; its events arrive here on a socket pair. Each is an
 *          audit record of kind decision with the action `guard`. A denied write is also a line in
 *          guard/denied of the sandbox's directory, for `sbx run` and `sbx review`, and a text for
 *          sbx-why in the guest: its program only sees "Permission denied".
 * Trust    Events are untrusted: paths are the guest's, and the supervisor may be compromised. Each
 *          is checked; a malformed one is counted as lost.
 * Owns     guard/denied, and the list of kinds.
 * Limits   GUARD_RATE records a second after GUARD_BURST; the next record counts the others.
 *          GUARD_MAX_DENIED bytes of guard/denied, then it begins again.
 * See      guard_test.c, src/sbxd/disk/guarded.h
 */
#pragma once

#include "lib/base/bucket.h"
#include "lib/rules/airlock/autorun.h"
#include "lib/rules/airlock/dirty.h"
#include "lib/vm/share/guard.h"

#define GUARD_BURST 100
#define GUARD_RATE 5
#define GUARD_MAX_READ 32 /* events before other work continues */
#define GUARD_MAX_DENIED (256u << 10)
#define GUARD_N_RECENT 32
#define GUARD_RECENT_MS 5000 /* equal denials within this time are one line */

struct keeper;

struct guard {
	int fd; /* events; -1: none */
	struct bucket bucket;
	uint64_t n_lost; /* events without a record of their own */
	struct autorun_list *list;
	bool was_loaded;
	struct {
		struct guard_event event;
		uint64_t time_ms; /* 0: none */
	} recent[GUARD_N_RECENT];
	size_t n_recent;
};

void guard_init(struct keeper *k);
/* A new socket pair for a share. *ret_event_fd is the end of its guard, -1 if the guard is off. */
int guard_open(struct keeper *k, int *ret_event_fd, struct err *err) MUST_CHECK;
int guard_watch(struct keeper *k) MUST_CHECK;
void guard_on_event(struct keeper *k);
/* The share is stopped. */
void guard_drop(struct keeper *k);
