/* SPDX-License-Identifier: Apache-2.0 */
/* Superblocks of mke2fs, and corrupted ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/guest/init/grow.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define GIB (1ull << 30)

static char image[] = "/tmp/sbx-grow-XXXXXX";
static uint8_t sb[GROW_SUPERBLOCK_BYTES];

static void make(const char *options)
{
	AUTO_FREE char *cmd =
		xasprintf("PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 %s %s", options, image);
	AUTO_CLOSE int fd = open(image, O_RDONLY | O_CLOEXEC);

	assert_int_equal(truncate(image, 2 * GIB), 0);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(pread(fd, sb, sizeof(sb), GROW_SUPERBLOCK_AT), (ssize_t)sizeof(sb));
}

static void a_larger_disk_is_taken_whole(void **state)
{
	make("-b 4096 -O 64bit");
	assert_int_equal(grow_blocks(sb, 2 * GIB), 0);
	assert_int_equal(grow_blocks(sb, 2 * GIB + (64 << 20)), 0); /* not worth it */
	assert_int_equal(grow_blocks(sb, 2 * GIB + (128 << 20)), (2 * GIB + (128 << 20)) / 4096);
	assert_int_equal(grow_blocks(sb, 1024 * GIB), 1024 * GIB / 4096);
	assert_int_equal(grow_blocks(sb, 1 * GIB), 0); /* never smaller */
	make("-b 1024 -O ^64bit");
	assert_int_equal(grow_blocks(sb, 4 * GIB), 4 * GIB / 1024);
}

static void what_is_not_ext4_is_left_alone(void **state)
{
	make("-b 4096 -O 64bit");
	sb[0x39] ^= 1;
	assert_int_equal(grow_blocks(sb, 40 * GIB), 0);
	sb[0x39] ^= 1;
	sb[0x18] = 54; /* block size: 2^64 */
	assert_int_equal(grow_blocks(sb, 40 * GIB), 0);
	sb[0x18] = 2;
	memset(sb + 0x150, 0xff, 4); /* more blocks than any disk has */
	assert_int_equal(grow_blocks(sb, 40 * GIB), 0);
	memset(sb, 0, sizeof(sb));
	assert_int_equal(grow_blocks(sb, 40 * GIB), 0);
}

static int setup(void **state)
{
	AUTO_CLOSE int fd = mkstemp(image);

	return fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	return unlink(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_larger_disk_is_taken_whole),
		cmocka_unit_test(what_is_not_ext4_is_left_alone),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
