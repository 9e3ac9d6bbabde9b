/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_rig - a process with virtiofsd's filter, whose calls the guard decides, for guard_test.c
 * and guard_bench.c.
 *
 * How      filter_rig_enter is called in a fork. It writes the number of the listener to `out`,
 *          waits for the first order, of `n` bytes, and closes the listener.
 * Trust    Tests only. The process exits with 1 if a step fails.
 */
#pragma once

#include <stddef.h>

void filter_rig_enter(int in, int out, void *order, size_t n);
