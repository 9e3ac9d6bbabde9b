/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void test_copy_cut_and_take(void **state)
{
	struct secret s = {0}, t;

	assert_int_equal(secret_copy(&s, slice_of("canary-value", 12), NULL), 0);
	assert_memory_equal(s.p, "canary-value", 12);
	secret_cut(&s, 6);
	assert_int_equal(s.n, 6);
	assert_memory_equal(s.p, "canary\0\0\0\0\0\0", 12);
	t = secret_take(&s);
	assert_null(s.p);
	secret_done(&s);
	assert_memory_equal(t.p, "canary", 6);
	secret_done(&t);
	secret_done(&t);
	assert_null(t.p);
}

/* Runs in a child; gives the signal that ended it. */
static int touch(const uint8_t *p)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		_exit(*(const volatile uint8_t *)p == 0 ? 10 : 11);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void test_guard_pages(void **state)
{
	struct secret s = {0};

	secret_forbid_hidden();
	assert_int_equal(secret_init(&s, 100, NULL), 0);
	assert_int_equal(touch(s.p + s.size), SIGSEGV);
	assert_int_equal(touch((uint8_t *)s.map), SIGSEGV);
	secret_done(&s);
}

static void test_a_child_gets_nothing(void **state)
{
	struct secret s = {0};

	assert_int_equal(secret_copy(&s, slice_of("x", 1), NULL), 0);
	assert_int_equal(touch(s.p), s.kind == SECRET_HIDDEN ? SIGSEGV : -10);
	secret_done(&s);
	secret_forbid_hidden();
	assert_int_equal(secret_copy(&s, slice_of("x", 1), NULL), 0);
	assert_int_not_equal(s.kind, SECRET_HIDDEN);
	assert_int_equal(touch(s.p), -10); /* wiped, not copied */
	secret_done(&s);
}

/* Over the limit the memory works, and says what it is. In a child, because it gives up rights. */
static void test_the_limit_of_locked_memory(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		const struct rlimit none = {0};
		struct secret s = {0};

		(void)setrlimit(RLIMIT_MEMLOCK, &none);
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		if (secret_copy(&s, slice_of("x", 1), NULL) < 0 || s.kind != SECRET_PLAIN ||
			s.p[0] != 'x')
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* VmFlags of the mapping: locked, not dumped. */
static void test_locked_and_not_dumped(void **state)
{
	struct secret s = {0};
	char line[512], want[32];
	bool here = false, good = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	assert_non_null(f);
	assert_int_equal(secret_init(&s, 4096, NULL), 0);
	(void)snprintf(want, sizeof(want), "%lx-", (unsigned long)(uintptr_t)s.p);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, want, strlen(want)) == 0)
			here = true;
		if (here && strncmp(line, "VmFlags:", 8) == 0) {
			good = strstr(line, " dd") &&
			       (s.kind == SECRET_PLAIN || strstr(line, " lo"));
			break;
		}
	}
	(void)fclose(f);
	assert_true(good);
	secret_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy_cut_and_take),
		cmocka_unit_test(test_the_limit_of_locked_memory),
		cmocka_unit_test(test_locked_and_not_dumped),
		cmocka_unit_test(test_a_child_gets_nothing),
		cmocka_unit_test(test_guard_pages),
		cmocka_unit_test(test_locked_and_not_dumped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
