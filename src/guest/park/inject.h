/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject - makes another program do system calls: ptrace.
 *
 * How      inject_hold stops all threads of it. inject_begin saves the registers and the signal
 *          mask of one thread and gets a page for arguments; inject_call points it at a system call
 *          instruction in its vdso, so that nothing of its code is changed; inject_end puts all
 *          back. A system call that the stop has interrupted goes on by itself: before the thread
 *          is let go it is stopped once more the same way, and the kernel does the rest.
 * Trust    The program is the guest's and may do anything; what comes of it is its own matter.
 *          Waits are bounded.
 * Owns     The stop: whoever ends without inject_release lets the program go, by the kernel.
 * Limits   INJECT_MS for each stop, INJECT_MAX_THREADS. 64-bit programs of this machine only.
 * See      inject_arch.h (registers), park_reseat_test.c
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "inject_arch.h"
#include "lib/base/err.h"

#define INJECT_MS 3000
#define INJECT_MAX_THREADS 4096
#define INJECT_PAGE 4096

struct inject {
	pid_t pid;
	pid_t *tids;
	size_t n_tids;
	int mem;	  /* /proc/PID/mem */
	uint64_t insn;	  /* where a system call instruction is */
	uint64_t page;	  /* for arguments; 0: none */
	uint64_t rseq;	  /* where the thread's restartable sequence is noted; 0: nowhere */
	uint64_t rseq_cs; /* and what is noted */
	uint64_t mask;	  /* its blocked signals */
	bool begun;
	struct inject_regs saved;
};

/* Stops every thread, also of a program that is frozen. -ESRCH: it is gone. Call inject_release in
 * any case. */
int inject_hold(struct inject *in, pid_t pid, struct err *err) MUST_CHECK;
int inject_begin(struct inject *in, struct err *err) MUST_CHECK;
/* What the system call gave, or a negative errno; -EIO when the program is gone or did not do
 * it. */
int64_t inject_call(struct inject *in, long nr, const uint64_t args[6]) MUST_CHECK;
/* Bytes of its memory. */
int inject_put(const struct inject *in, uint64_t at, const void *p, size_t n) MUST_CHECK;
int inject_get(const struct inject *in, uint64_t at, void *p, size_t n) MUST_CHECK;
int inject_end(struct inject *in) MUST_CHECK;
/* Lets it go on. */
void inject_release(struct inject *in);
