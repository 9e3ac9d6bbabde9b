/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_run - runs a small command in a running sandbox, with input and output in memory.
 *
 * How      One session (session_run.h) between two files in memory. `watch` gets the output so far
 *          about five times per second, so that long commands can show progress.
 * Trust    The output comes from the guest: limited here, cleaned by the caller that prints it.
 * Owns     The output is the caller's.
 * Limits   GUEST_RUN_MAX_OUT bytes of output and GUEST_RUN_MS (or max_ms); more ends it.
 * See      session_run.h, guest_run_test.c
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/client/cli/ui.h"

#define GUEST_RUN_MAX_OUT (256u << 10)
#define GUEST_RUN_MS (5u * 60 * 1000)

struct guest_run {
	const char *ref, *user;	 /* user NULL: the agent */
	const char *const *argv; /* NULL-terminated */
	struct slice in;
	void (*watch)(void *arg, const char *out); /* or NULL */
	void *arg;
	uint64_t max_ms; /* 0: GUEST_RUN_MS */
	char *out;	 /* result: its stdout; owned by the caller */
	int status;
};

/* Returns 0 if it exited with status 0. -EINTR if a signal interrupted it, which is forwarded.
 * -EFBIG or -ETIMEDOUT at a limit. Else -EIO and its stderr, or the reason why it did not run. */
int guest_run(struct guest_run *g, struct problem *p) MUST_CHECK;
