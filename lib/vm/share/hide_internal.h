/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hide_internal - what the supervisor and the guard have in common. For hide.c and guard*.c only.
 *
 * How      hide_read_name reads a string from the memory of a process that waits in a notification,
 *          page by page. hide_keep_fds closes all descriptors of a fork but some.
 * Trust    The bytes are the guest's, at most PATH_MAX of them.
 * See      hide.h, guard.h
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/attr.h"

int hide_read_name(pid_t pid, uint64_t addr, char buf[PATH_MAX]) MUST_CHECK;
/* -1 in the list is skipped. */
int hide_keep_fds(const int *fds, size_t n) MUST_CHECK;
