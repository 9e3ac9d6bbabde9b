/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test finds holes, work that is killed, and a seal that does not come about. */
#include "lib/os/jail/selftest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

static long do_nothing(int fd)
{
	return 0;
}

static long use_the_pair(int fd)
{
	return write(fd, "x", 1) == 1 ? 0 : -1;
}

static long make_a_pipe(int fd)
{
	int pair[2];

	return pipe(pair);
}

static long fail_at_work(int fd)
{
	return -1;
}

static int cannot_prepare(void)
{
	return -1;
}

static const struct jail_selftest_probe hole[] = {{"do nothing forbidden", SYS_getpid, {0}}, {0}};

static void test_a_tight_jail_passes(void **state)
{
	const struct jail_selftest t = {.profile = JAIL_ORIGIN,
		.tables = {jail_selftest_any, jail_selftest_files, jail_selftest_sockets},
		.work = use_the_pair};

	assert_int_equal(jail_selftest_run(&t), 0);
}

static void test_a_hole_is_found(void **state)
{
	const struct jail_selftest t = {
		.profile = JAIL_ORIGIN, .tables = {hole}, .work = use_the_pair};

	assert_int_equal(jail_selftest_run(&t), 1);
	/* a jail that allows what a table refuses: egress connects */
	assert_int_equal(jail_selftest_run(&(struct jail_selftest){.profile = JAIL_EGRESS,
				 .tables = {jail_selftest_sockets},
				 .work = use_the_pair}),
		1);
}

static void test_work_must_be_done(void **state)
{
	assert_int_equal(jail_selftest_run(&(struct jail_selftest){
				 .profile = JAIL_ORIGIN, .work = fail_at_work}),
		1);
	/* killed: the supervisor of hidden names makes no descriptor */
	assert_int_equal(jail_selftest_run(&(struct jail_selftest){
				 .profile = JAIL_HIDE, .work = make_a_pipe}),
		1);
	assert_int_equal(
		jail_selftest_run(&(struct jail_selftest){
			.profile = JAIL_ORIGIN, .prepare = cannot_prepare, .work = do_nothing}),
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_tight_jail_passes),
		cmocka_unit_test(test_a_hole_is_found),
		cmocka_unit_test(test_work_must_be_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
