/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_fixture - a guest's memory in tests: how much of it is used, and a copy of it.
 *
 * How      Include it after cmocka. Each test program uses some of the functions.
 * Trust    Test programs only.
 */
#pragma once

#include <sys/stat.h>
#include "lib/vm/vmm/image/image_internal.h"

static inline uint64_t memory_used(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A machine writes to its memory: each gets its own. */
static inline int memory_copy(int from, uint64_t size)
{
	int fd = vmm_memory_new(size, NULL, NULL);
	struct image_file file;

	assert_true(fd >= 0);
	assert_int_equal(image_copy_memory(from, fd, size, &file), 0);
	return fd;
}
