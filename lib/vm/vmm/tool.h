/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool - runs a short program of the host and reads its output: qemu-img, qemu --version.
 *
 * How      No shell, an environment of LC_ALL alone, nothing inherited but a pipe. Control
 *          characters of the output become spaces; output that does not fit is dropped.
 * Trust    Runs in keeper and sbxd. The program is qemu's, with our arguments; a file that a guest
 *          has written is read in a jail, of which tool_finish is the second half.
 * Limits   The time of each call; then the program is killed.
 * See      tool_test.c
 */
#pragma once

#include <stddef.h>
#include "lib/base/attr.h"
#include "lib/os/jail/jail.h"

/* Only in a process that has no spawner yet (lib/os/worker).
 * The exit status (128: by a signal), -ETIMEDOUT or another negative errno. */
int tool_run(const char *const *argv, char *said, size_t size, int timeout_ms) MUST_CHECK;
/* The same for a running child that writes to `out`; reaps it. */
int tool_finish(
	struct jail_child *child, int out, char *said, size_t size, int timeout_ms) MUST_CHECK;
