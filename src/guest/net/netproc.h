/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netproc - PID 1's view of sbx-guest-net: starts it, hears that it is ready, starts it again.
 *
 * How      Forked and executed from PID 1's own file (/proc/self/exe: the name in the initramfs is
 *          gone). It says one byte on a pipe when rules and listeners are in place. /setup is
 *          answered only then, so that the first program finds the network; after NETPROC_WAIT_MS
 *          it is answered all the same. When it dies it comes again, after a pause that grows
 *          while it dies young.
 * Trust    The process is ours.
 * Owns     The pipe.
 * See      net_main.h
 */
#pragma once

#include <stdbool.h>
#include "lib/os/loop/loop.h"

#define NETPROC_WAIT_MS 5000

struct netproc {
	struct loop *loop;
	pid_t pid; /* 0 while it does not run */
	int pipe;  /* -1 when nothing is to be heard */
	bool ready;
	uint64_t started_ms;
	unsigned pause_ms;
	struct loop_timer again;
};

void netproc_start(struct netproc *p, struct loop *loop);
/* True when it is ready now. */
bool netproc_on_pipe(struct netproc *p);
void netproc_on_timer(struct netproc *p);
/* True when pid was it. */
bool netproc_on_exit(struct netproc *p, pid_t pid, bool ending);
