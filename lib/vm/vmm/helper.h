/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - a fork without exec that does one long thing, so that the caller's loop goes on.
 *
 * How      helper_begin forks: 0 in the child, which ends with _exit, 1 in the parent. pidfd
 *          becomes readable when it has ended; then helper_end. What it found out is its exit
 *          status, or whatever the two agree on.
 * Trust    Has everything that the caller has; what it reads is bounded by who writes the child.
 * Owns     The child: it dies with its parent.
 * See      image_child.c, selftest.c, helper_test.c
 */
#pragma once

#include <sys/types.h>
#include "lib/base/err.h"

int helper_begin(pid_t *ret_pid, int *ret_pidfd, struct err *err) MUST_CHECK;
/* Waits. Its exit status; -1 when it did not exit by itself. */
int helper_end(pid_t pid, int *pidfd);
/* Nothing when pidfd is -1. */
void helper_kill(pid_t pid, int *pidfd);
