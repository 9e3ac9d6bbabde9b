/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/keeper/keeper.h"

#define M (1ull << 20)

static void the_reserve_is_a_tenth_at_most(void **state)
{
	assert_int_equal(space_reserve(256 * M, 100000 * M), 256 * M);
	assert_int_equal(space_reserve(256 * M, 260 * M), 26 * M);
	assert_int_equal(space_reserve(0, 260 * M), 0);
}

static void only_a_sandbox_that_writes_is_paused(void **state)
{
	static const struct {
		bool is_paused, writes;
		uint64_t free, need;
		int what;
	} rows[] = {
		{false, true, 255 * M, 256 * M, 1},
		{false, true, 256 * M, 256 * M, 0},
		{false, false, 0, 256 * M, 0},
		/* Continues at the reserve plus an eighth, to avoid oscillation. */
		{true, false, 256 * M, 256 * M, 0},
		{true, true, 287 * M, 256 * M, 0},
		{true, true, 288 * M, 256 * M, -1},
		/* Without a reserve QEMU pauses the VM; a little space is required. */
		{true, false, 0, 0, 0},
		{true, false, SPACE_LEAST - 1, 0, 0},
		{true, false, SPACE_LEAST, 0, -1},
		{false, true, 0, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int what =
			space_decide(rows[i].is_paused, rows[i].writes, rows[i].free, rows[i].need);

		if (what != rows[i].what)
			fail_msg("row %zu: %d", i, what);
	}
}

/* Between two checks nothing may use up what is left above half of the reserve. */
static void memory_in_a_file_is_looked_at_in_time(void **state)
{
	assert_int_equal(space_interval(false, false, 9999 * M, 256 * M), SPACE_FAR_MS);
	assert_int_equal(space_interval(false, false, 300 * M, 256 * M), SPACE_LOOK_MS);
	assert_int_equal(space_interval(false, true, 9999 * M, 256 * M), SPACE_FAR_MS);
	assert_int_equal(space_interval(false, true, 4000 * M, 256 * M), SPACE_LOOK_MS);
	assert_int_equal(space_interval(false, true, 356 * M, 256 * M), (100 + 128) / 4);
	assert_int_equal(space_interval(false, true, 256 * M, 256 * M), 128 / 4);
	assert_int_equal(space_interval(false, true, 0, 26 * M), SPACE_FAST_MS);
	assert_int_equal(space_interval(true, true, 0, 256 * M), SPACE_LOOK_MS);
}

/* Many workspaces on one file system do not hide one on another. */
static void each_file_system_is_looked_at_once(void **state)
{
	char dir[] = "/dev/shm/space_test.XXXXXX", other[] = "/var/tmp/space_test.XXXXXX";
	char paths[20][64];
	struct space s = {0};

	assert_non_null(mkdtemp(dir));
	assert_non_null(mkdtemp(other));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/%zu", dir, i);
		assert_int_equal(mkdir(paths[i], 0700), 0);
		space_add(&s, paths[i]);
	}
	assert_int_equal(s.n_places, 1);
	space_add(&s, other);
	space_add(&s, "/proc"); /* not a file system that fills up */
	assert_int_equal(s.n_places, 2);
	assert_ptr_equal(s.place[1], other);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_int_equal(rmdir(paths[i]), 0);
	assert_int_equal(rmdir(dir) | rmdir(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reserve_is_a_tenth_at_most),
		cmocka_unit_test(only_a_sandbox_that_writes_is_paused),
		cmocka_unit_test(memory_in_a_file_is_looked_at_in_time),
		cmocka_unit_test(each_file_system_is_looked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
