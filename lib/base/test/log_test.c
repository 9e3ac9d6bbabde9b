/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char seen[4096];
static int saved_stderr, catcher[2];

static void catch_start(void)
{
	assert_int_equal(pipe2(catcher, O_NONBLOCK), 0);
	saved_stderr = dup(2);
	assert_int_equal(dup2(catcher[1], 2), 2);
}

/* Gives what was written to stderr since catch_start. */
static const char *catch_end(void)
{
	ssize_t n;

	assert_int_equal(dup2(saved_stderr, 2), 2);
	n = read(catcher[0], seen, sizeof(seen) - 1);
	seen[n > 0 ? n : 0] = '\0';
	(void)close(catcher[0]);
	(void)close(catcher[1]);
	(void)close(saved_stderr);
	return seen;
}

static void one_line_with_program_and_level(void **state)
{
	log_init("tester");
	catch_start();
	log_warn("disk of %s is full", "demo");
	(void)catch_end();
	assert_non_null(strstr(seen, " tester["));
	assert_non_null(strstr(seen, "] warn: disk of demo is full\n"));
}

static void peers_cannot_forge_a_line(void **state)
{
	catch_start();
	log_error("name %s", "a\nb\r\x1b[2J\x7f\tc");
	(void)catch_end();
	assert_non_null(strstr(seen, "name a?b??[2J??c\n"));
	assert_ptr_equal(strchr(seen, '\n'), seen + strlen(seen) - 1);
	/* C1 as UTF-8 and as a byte, a character that turns text around, and an umlaut. */
	catch_start();
	log_error("name %s", "\xc2\x9b;2J|\x9b|\xe2\x80\xae|\xc3\xa4");
	(void)catch_end();
	assert_non_null(strstr(seen, "name ??;2J|?|???|\xc3\xa4\n"));
}

static void long_text_is_cut_to_one_line(void **state)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	catch_start();
	log_error("%s", text);
	(void)catch_end();
	assert_int_equal(strlen(seen), 1023);
	assert_int_equal(seen[1022], '\n');
}

/* The name comes from main.c, but a long one must not reach behind the line. */
static void long_program_names_are_cut(void **state)
{
	static char name[3000];

	memset(name, 'p', sizeof(name) - 1);
	log_init(name);
	catch_start();
	log_error("text");
	(void)catch_end();
	log_init("tester");
	assert_true(strlen(seen) <= 1024);
	assert_non_null(strstr(seen, "error: text\n"));
}

static void set_level(const char *name)
{
	assert_int_equal(setenv("SBX_LOG", name, 1), 0);
	log_init("tester");
}

static void levels_hide_what_is_below(void **state)
{
	set_level("warn");
	catch_start();
	log_info("hidden");
	log_debug("hidden");
	log_warn("shown");
	(void)catch_end();
	assert_null(strstr(seen, "hidden"));
	assert_non_null(strstr(seen, "shown"));
	set_level("info");
}

static void environment_sets_the_level(void **state)
{
	set_level("debug");
	catch_start();
	log_debug("deep");
	(void)catch_end();
	assert_non_null(strstr(seen, "debug: deep\n"));
	set_level("info");
	set_level("nonsense");
	catch_start();
	log_debug("deep");
	(void)catch_end();
	assert_string_equal(seen, "");
	(void)unsetenv("SBX_LOG");
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, '\n'))) {
		n++;
		text++;
	}
	return n;
}

static void too_many_lines_are_left_out_and_counted(void **state)
{
	log_init("tester");
	log_limit(3, 1);
	catch_start();
	for (unsigned i = 0; i < 1000; i++)
		log_error("line %u", i);
	(void)catch_end();
	assert_int_equal(count_lines(seen), 3);
	assert_non_null(strstr(seen, "line 2\n"));
	log_limit(1, 60000); /* one a millisecond */
	catch_start();
	for (unsigned i = 0; i < 20; i++)
		log_error("line %u", i);
	(void)usleep(20000);
	log_error("the last");
	(void)catch_end();
	assert_non_null(strstr(seen, " lines were skipped: too many lines per second\n"));
	assert_non_null(strstr(seen, "the last\n"));
	log_limit(0, 1);
	catch_start();
	for (unsigned i = 0; i < 20; i++)
		log_error("line %u", i);
	(void)catch_end();
	assert_int_equal(count_lines(seen), 20);
}

static void die_exits_with_one(void **state)
{
	int status;
	pid_t pid;

	catch_start();
	pid = fork();
	if (pid == 0)
		die("opening %s", "/x");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)catch_end();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_non_null(strstr(seen, "error: opening /x\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_with_program_and_level),
		cmocka_unit_test(peers_cannot_forge_a_line),
		cmocka_unit_test(long_text_is_cut_to_one_line),
		cmocka_unit_test(long_program_names_are_cut),
		cmocka_unit_test(levels_hide_what_is_below),
		cmocka_unit_test(environment_sets_the_level),
		cmocka_unit_test(too_many_lines_are_left_out_and_counted),
		cmocka_unit_test(die_exits_with_one),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
