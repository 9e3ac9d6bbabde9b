/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power - clean shutdown: TERM to all processes, then KILL, then the disks are unmounted.
 *
 * How      power_begin sends TERM to all. When no process is left, or after POWER_TERM_MS,
 *          power_finish kills, syncs, unmounts what it can, makes the root read-only and powers
 *          off.
 * Trust    Runs in PID 1; processes of the guest may ignore TERM.
 * Limits   POWER_TERM_MS and POWER_KILL_MS; nothing here waits longer.
 */
#pragma once

#include "lib/os/loop/loop.h"

#define POWER_TERM_MS 2000
#define POWER_KILL_MS 500

struct power {
	struct loop *loop;
	bool begun;
	struct loop_timer late;
};

void power_begin(struct power *p, struct loop *loop);
/* Returns true if nothing is left to wait for: call power_finish. */
bool power_is_quiet(const struct power *p);
void power_finish(void) __attribute__((noreturn));
/* Powers off immediately: the self-test, and a failed boot. */
void power_off_now(void) __attribute__((noreturn));
