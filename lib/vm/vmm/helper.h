/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - a fork without exec that does one long operation, so that the caller's loop keeps
 * running.
 *
 * How      helper_begin forks: 0 in the child, which ends with _exit, 1 in the parent. pidfd
 *          becomes readable when it has ended; then helper_end. Its result is its exit status, or
 *          what the caller defines.
 * Trust    Has everything that the caller has; the code of the child limits its input.
 * Owns     The child: it dies with its parent.
 * See      image_child.c, selftest.c, helper_test.c
 */
#pragma once

#include <sys/types.h>
#include "lib/base/err.h"

int helper_begin(pid_t *ret_pid, int *ret_pidfd, struct err *err) MUST_CHECK;
/* Waits. The exit status; -1 if a signal killed it. */
int helper_end(pid_t pid, int *pidfd);
/* Nothing when pidfd is -1. */
void helper_kill(pid_t pid, int *pidfd);
