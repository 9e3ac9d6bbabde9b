/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/vm/vmm/stub.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define KERNEL_BYTES (1 << 20)

static char dir[] = "/tmp/sbx-stub-XXXXXX";
static char kernel[64], stub[64];

static int prepare(void **state)
{
	assert_non_null(mkdtemp(dir));
	snprintf(kernel, sizeof(kernel), "%s/vmlinuz", dir);
	snprintf(stub, sizeof(stub), "%s/stub", dir);
	return 0;
}

static int clean(void **state)
{
	(void)unlink(kernel);
	(void)unlink(stub);
	return rmdir(dir);
}

/* A kernel file of n bytes with so many setup sectors; its bytes tell places apart. */
static uint8_t *make_kernel(size_t n, uint8_t sects)
{
	uint8_t *buf = xmalloc(KERNEL_BYTES);
	AUTO_CLOSE int fd = open(kernel, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t i = 0; i < KERNEL_BYTES; i++)
		buf[i] = (uint8_t)(i / 512 + i);
	buf[0x1f1] = sects;
	memcpy(buf + 0x202, "HdrS", 4);
	assert_int_equal(fd_write_all(fd, buf, n), 0);
	return buf;
}

static void the_setup_sectors_and_a_little_more_are_written(void **state)
{
	static const struct {
		uint8_t sects;
		off_t want;
	} rows[] = {{0, 5 * 512 + STUB_MORE}, {1, 2 * 512 + STUB_MORE}, {39, 40 * 512 + STUB_MORE},
		{255, 256 * 512 + STUB_MORE}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE uint8_t *want = make_kernel(KERNEL_BYTES, rows[i].sects);
		AUTO_FREE uint8_t *got = xmalloc(KERNEL_BYTES);
		AUTO_CLOSE int fd = -1;
		struct stat st;

		assert_int_equal(stub_write(stub, kernel, NULL), 0);
		assert_int_equal(stat(stub, &st), 0);
		assert_int_equal(st.st_size, rows[i].want);
		fd = open(stub, O_RDONLY | O_CLOEXEC);
		assert_int_equal(fd_read_full(fd, got, KERNEL_BYTES), rows[i].want);
		assert_memory_equal(got, want, (size_t)rows[i].want);
	}
}

static void other_files_have_no_stub(void **state)
{
	static const size_t sizes[] = {0, 1, 0x205, 40 * 512 + STUB_MORE - 1};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		free(make_kernel(sizes[i], 39));
		(void)unlink(stub);
		assert_int_equal(stub_write(stub, kernel, &err), -ENOTSUP);
		assert_non_null(strstr(err.text, "is not a bzImage"));
		assert_int_equal(access(stub, F_OK), -1);
	}
	assert_int_equal(truncate(kernel, 0) + truncate(kernel, KERNEL_BYTES), 0); /* no magic */
	assert_int_equal(stub_write(stub, kernel, &err), -ENOTSUP);
	assert_int_equal(unlink(kernel), 0);
	assert_int_equal(stub_write(stub, kernel, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_setup_sectors_and_a_little_more_are_written),
		cmocka_unit_test(other_files_have_no_stub),
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
