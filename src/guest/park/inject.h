/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject - makes another program execute system calls, by ptrace.
 *
 * How      inject_hold stops all its threads. inject_begin saves the registers and the signal mask
 *          of one thread and allocates a page for arguments. inject_call points the thread at a
 *          system call instruction in its vdso, so its code is not changed. inject_end restores
 *          everything. An interrupted system call is restarted: before the thread is released it is
 *          stopped again the same way, and the kernel restarts the call.
 * Trust    The program is untrusted; the result affects only the guest. Waits are limited.
 * Owns     The stop: if this process exits without inject_release, the kernel releases the program.
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
	uint64_t rseq;	  /* address of the thread's restartable sequence; 0: none */
	uint64_t rseq_cs; /* and its noted value */
	uint64_t mask;	  /* its blocked signals */
	bool begun;
	struct inject_regs saved;
};

/* Stops every thread, also of a frozen program. -ESRCH: it has exited. Call inject_release in any
 * case. */
int inject_hold(struct inject *in, pid_t pid, struct err *err) MUST_CHECK;
int inject_begin(struct inject *in, struct err *err) MUST_CHECK;
/* Returns the result of the system call, or a negative errno; -EIO if the program exited or did not
 * execute it. */
int64_t inject_call(struct inject *in, long nr, const uint64_t args[6]) MUST_CHECK;
/* Write and read its memory. */
int inject_put(const struct inject *in, uint64_t at, const void *p, size_t n) MUST_CHECK;
int inject_get(const struct inject *in, uint64_t at, void *p, size_t n) MUST_CHECK;
int inject_end(struct inject *in) MUST_CHECK;
/* Lets it continue. */
void inject_release(struct inject *in);
