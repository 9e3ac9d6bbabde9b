/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight_rig - descriptors in flight, of which the kernel allows a user so many.
 *
 * How      flight_fill sends FLIGHT_MANY descriptors to nobody; flight_limit gives one program a
 *          limit that lies below them, so that its own sending fails with ETOOMANYREFS. Programs
 *          with the usual limits are not concerned. Closing the pair ends it.
 * Trust    Tests only.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/os/ipc/msg.h"

#define FLIGHT_MANY 150
#define FLIGHT_FEW 100

static inline void flight_fill(int pair[2])
{
	assert_int_equal(ipc_pair(pair), 0);
	for (unsigned i = 0; i < FLIGHT_MANY; i++)
		assert_int_equal(ipc_send(pair[0], 1, i, slice_of(NULL, 0), STDERR_FILENO), 0);
}

static inline void flight_limit(pid_t pid)
{
	struct rlimit limit;

	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = FLIGHT_FEW;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}
