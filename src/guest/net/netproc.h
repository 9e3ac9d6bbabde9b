/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netproc - starts and restarts sbx-guest-net for PID 1.
 *
 * How      Forked and executed from PID 1's own file (/proc/self/exe: no name leads into the
 *          initramfs). The process writes one byte to a pipe when rules and listeners are in
 *          place. /setup is answered only then, so that the first program has a network, or after
 *          NETPROC_WAIT_MS. When the process exits it is restarted, after a pause that grows if it
 *          keeps exiting early.
 * Trust    The process is part of sbx-guest.
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
	int pipe;  /* -1: nothing to read */
	bool ready;
	uint64_t started_ms;
	unsigned pause_ms;
	struct loop_timer again;
};

void netproc_start(struct netproc *p, struct loop *loop);
/* Returns true if it became ready. */
bool netproc_on_pipe(struct netproc *p);
void netproc_on_timer(struct netproc *p);
/* Returns true if pid was it. */
bool netproc_on_exit(struct netproc *p, pid_t pid, bool ending);
