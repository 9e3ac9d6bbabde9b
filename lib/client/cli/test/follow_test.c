/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/client/cli/follow.h"
#include "lib/base/clock.h"

struct seen {
	char last[FOLLOW_MAX_LINE];
	unsigned n;
};

static void see(void *arg, char *line)
{
	struct seen *s = arg;

	(void)strncpy(s->last, line, sizeof(s->last) - 1);
	s->n++;
}

static int run(const char *script, struct follow f, struct seen *s)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	struct err err;

	*s = (struct seen){0};
	f.argv = argv;
	f.fn = see;
	f.arg = s;
	return follow_run(&f, &err);
}

static void test_lines_and_status(void **state)
{
	struct seen s;

	assert_int_equal(run("echo a; echo b >&2; printf c; exit 7",
				 (struct follow){.lines = 1, .in_fd = -1}, &s),
		7);
	assert_int_equal(s.n, 3);
	assert_string_equal(s.last, "c");
	assert_int_equal(run("kill -9 $$", (struct follow){.lines = 1, .in_fd = -1}, &s), 137);
	assert_int_equal(
		run("echo p >&3", (struct follow){.lines = 3, .in_fd = -1, .out_fd = -1}, &s), 0);
	assert_string_equal(s.last, "p");
}

static void test_lines_are_harmless_and_bounded(void **state)
{
	struct seen s;

	assert_int_equal(
		run("printf 'a\\033[2Jb\\n'", (struct follow){.lines = 1, .in_fd = -1}, &s), 0);
	assert_null(strchr(s.last, '\033'));
	assert_int_equal(run("head -c 100000 /dev/zero | tr '\\0' x",
				 (struct follow){.lines = 1, .in_fd = -1}, &s),
		0);
	assert_int_equal(s.n, 1);
	assert_int_equal(strlen(s.last), FOLLOW_MAX_LINE - 1);
}

static void test_output_is_bounded(void **state)
{
	int fd = memfd_create("follow", 0);
	struct seen s;
	struct stat st;

	assert_int_not_equal(
		run("exec cat /dev/zero",
			(struct follow){.lines = 3, .in_fd = -1, .out_fd = fd, .max_bytes = 65536},
			&s),
		0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 65536);
	(void)close(fd);
}

static void test_time_is_bounded(void **state)
{
	uint64_t from = clock_mono_ms();
	struct seen s;

	assert_int_equal(
		run("exec sleep 60", (struct follow){.lines = 1, .in_fd = -1, .max_ms = 300}, &s),
		-ETIMEDOUT);
	/* one that lets go of its lines and goes on */
	assert_int_equal(run("exec sleep 60 >/dev/null 2>&1",
				 (struct follow){.lines = 1, .in_fd = -1, .max_ms = 300}, &s),
		-ETIMEDOUT);
	assert_true(clock_mono_ms() - from < 50000);
}

static void test_a_signal_ends_the_program_and_not_us(void **state)
{
	struct seen s;

	follow_catch();
	assert_false(follow_caught());
	assert_int_equal(
		run("kill -INT $PPID; exec sleep 60", (struct follow){.lines = 1, .in_fd = -1}, &s),
		128 + SIGTERM);
	assert_true(follow_caught());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_and_status),
		cmocka_unit_test(test_lines_are_harmless_and_bounded),
		cmocka_unit_test(test_output_is_bounded),
		cmocka_unit_test(test_time_is_bounded),
		cmocka_unit_test(test_a_signal_ends_the_program_and_not_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
