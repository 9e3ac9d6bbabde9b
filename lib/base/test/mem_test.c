/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/mem.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void zero_bytes_are_a_valid_pointer(void **state)
{
	AUTO_FREE char *a = xmalloc(0);
	AUTO_FREE char *b = xcalloc(0, 8);
	AUTO_FREE char *c = xrealloc(NULL, 0);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
}

static void calloc_clears(void **state)
{
	AUTO_FREE uint8_t *p = xcalloc(4096, 1);

	for (size_t i = 0; i < 4096; i++)
		assert_int_equal(p[i], 0);
}

static void strings_are_copies(void **state)
{
	char text[] = "sandbox";
	AUTO_FREE char *whole = xstrdup(text);
	AUTO_FREE char *part = xstrndup(text, 4);
	AUTO_FREE char *longer = xstrndup(text, 400);
	AUTO_FREE char *made = xasprintf("%s-%d", text, 7);

	text[0] = 'X';
	assert_string_equal(whole, "sandbox");
	assert_string_equal(part, "sand");
	assert_string_equal(longer, "sandbox");
	assert_string_equal(made, "sandbox-7");
}

static void take_empties_the_variable(void **state)
{
	char *p = xstrdup("x");
	AUTO_FREE char *q = TAKE(p);

	assert_null(p);
	assert_string_equal(q, "x");
}

/* In a child: what must not return aborts there. The size is hidden from the compiler. */
static int status_of_child(void (*fn)(volatile size_t n), size_t n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit no_core = {0, 0};

		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)close(STDERR_FILENO);
		(void)signal(SIGABRT, SIG_DFL);
		fn(n);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void try_malloc(volatile size_t n)
{
	free(xmalloc(n));
}

static void try_calloc(volatile size_t n)
{
	free(xcalloc(n, 16));
}

static void try_realloc(volatile size_t n)
{
	free(xrealloc(NULL, n));
}

static void out_of_memory_ends_the_process(void **state)
{
	void (*const tries[])(volatile size_t) = {try_malloc, try_calloc, try_realloc};

	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		assert_int_equal(status_of_child(tries[i], 64), 0);
		assert_true(status_of_child(tries[i], SIZE_MAX / 2) != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_bytes_are_a_valid_pointer),
		cmocka_unit_test(calloc_clears),
		cmocka_unit_test(strings_are_copies),
		cmocka_unit_test(take_empties_the_variable),
		cmocka_unit_test(out_of_memory_ends_the_process),
	};

	return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
