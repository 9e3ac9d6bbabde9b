/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/vm/vmm/helper.h"

#define WAIT_MS 10000

static void wait_for_end(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
}

static void the_exit_status_is_the_result(void **state)
{
	int pidfd = -1;
	pid_t pid;
	int r = helper_begin(&pid, &pidfd, NULL);

	if (r == 0)
		_exit(7);
	assert_int_equal(r, 1);
	wait_for_end(pidfd);
	assert_int_equal(helper_end(pid, &pidfd), 7);
	assert_int_equal(pidfd, -1);
}

static void a_signal_is_no_result(void **state)
{
	int pidfd = -1;
	pid_t pid;

	if (helper_begin(&pid, &pidfd, NULL) == 0) {
		(void)raise(SIGKILL);
		_exit(0);
	}
	wait_for_end(pidfd);
	assert_int_equal(helper_end(pid, &pidfd), -1);
}

static void one_that_is_not_wanted_any_more_is_killed(void **state)
{
	int pidfd = -1;
	pid_t pid;

	if (helper_begin(&pid, &pidfd, NULL) == 0)
		for (;;)
			(void)pause();
	helper_kill(pid, &pidfd);
	assert_int_equal(pidfd, -1);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	helper_kill(pid, &pidfd); /* once is enough */
}

/* A parent in the middle, so that its end can be seen. */
static void it_dies_with_its_parent(void **state)
{
	int p[2], pidfd = -1;
	pid_t middle, pid;
	struct pollfd end;

	assert_int_equal(pipe(p), 0);
	middle = fork();
	if (middle == 0) {
		if (helper_begin(&pid, &pidfd, NULL) == 0)
			for (;;)
				(void)pause();
		_exit(0);
	}
	(void)close(p[1]);
	assert_int_equal(waitpid(middle, NULL, 0), middle);
	end = (struct pollfd){.fd = p[0], .events = POLLIN};
	assert_int_equal(poll(&end, 1, WAIT_MS), 1); /* the last writer is gone */
	(void)close(p[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exit_status_is_the_result),
		cmocka_unit_test(a_signal_is_no_result),
		cmocka_unit_test(one_that_is_not_wanted_any_more_is_killed),
		cmocka_unit_test(it_dies_with_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
