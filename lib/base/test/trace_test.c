/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/trace.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/trace_test.XXXXXX";

static int init_with(const char *words, struct err *err)
{
	if (words)
		assert_int_equal(setenv("SBX_TRACE", words, 1), 0);
	else
		assert_int_equal(unsetenv("SBX_TRACE"), 0);
	return trace_init(err);
}

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static char *load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = xcalloc(1, TRACE_MAX_BYTES + 1);

	assert_true(fd >= 0);
	assert_true(read(fd, text, TRACE_MAX_BYTES) >= 0);
	(void)close(fd);
	return text;
}

static void listed_kinds_are_on(void **state)
{
	assert_int_equal(init_with("exec,ipc", NULL), 0);
	assert_true(trace_on(TRACE_IPC) && trace_on(TRACE_EXEC));
	assert_false(trace_on(TRACE_NET) || trace_on(TRACE_VM));
	assert_string_equal(trace_words(), "ipc,exec");
	assert_int_equal(init_with("ipc,net,vm,exec", NULL), 0);
	assert_string_equal(trace_words(), "ipc,net,vm,exec");
	assert_int_equal(init_with("", NULL), 0);
	assert_string_equal(trace_words(), "");
	assert_int_equal(init_with(NULL, NULL), 0);
	assert_false(trace_on(TRACE_IPC));
}

static void unknown_words_are_errors_that_name_the_valid_ones(void **state)
{
	static const char *const bad[] = {
		"all", "ipc,", ",ipc", ",", "ipc net", "IPC", "ip", "ipcs", "ipc,,net", " "};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		assert_true(init_with(bad[i], &err) < 0);
		assert_non_null(strstr(err.text, bad[i]));
		assert_non_null(strstr(err.text, "ipc, net, vm and exec"));
		assert_string_equal(trace_words(), "");
	}
}

static void lines_of_listed_kinds_go_to_the_file(void **state)
{
	AUTO_FREE char *path = path_of("one"), *text = NULL;
	struct stat st;

	log_init("tester");
	assert_int_equal(init_with("net", NULL), 0);
	trace_open(path);
	trace_line(TRACE_NET, "ask=%u %s", 5u, "a\nb\x1b[2J");
	trace_line(TRACE_IPC, "hidden");
	text = load(path);
	assert_non_null(strstr(text, " tester["));
	assert_non_null(strstr(text, "] trace net: ask=5 a?b?[2J\n"));
	assert_null(strstr(text, "hidden"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void nothing_is_created_while_tracing_is_off(void **state)
{
	AUTO_FREE char *path = path_of("off");

	assert_int_equal(init_with(NULL, NULL), 0);
	trace_open(path);
	trace_line(TRACE_NET, "hidden");
	assert_int_equal(access(path, F_OK), -1);
}

static void a_forked_process_writes_nothing(void **state)
{
	AUTO_FREE char *path = path_of("fork"), *text = NULL;
	int status;
	pid_t pid;

	assert_int_equal(init_with("vm", NULL), 0);
	trace_open(path);
	pid = fork();
	if (pid == 0) {
		trace_line(TRACE_VM, "of the child");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	trace_line(TRACE_VM, "of the parent");
	text = load(path);
	assert_null(strstr(text, "of the child"));
	assert_non_null(strstr(text, "of the parent"));
}

static void full_files_are_renamed_and_the_newest_lines_kept(void **state)
{
	AUTO_FREE char *path = path_of("full"), *old = path_of("full.1"), *new = NULL;
	char filler[900];
	struct stat st;
	unsigned i;

	memset(filler, 'x', sizeof(filler));
	filler[sizeof(filler) - 1] = '\0';
	assert_int_equal(init_with("ipc", NULL), 0);
	trace_open(path);
	for (i = 0; i < 3 * TRACE_MAX_BYTES / 900; i++)
		trace_line(TRACE_IPC, "%s", filler);
	trace_line(TRACE_IPC, "the last");
	new = load(path);
	assert_non_null(strstr(new, "the last\n"));
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= TRACE_MAX_BYTES);
	assert_int_equal(stat(old, &st), 0);
	assert_true(st.st_size <= TRACE_MAX_BYTES && st.st_size > TRACE_MAX_BYTES - 1024);
}

static void links_and_fifos_are_not_opened(void **state)
{
	AUTO_FREE char *link = path_of("link"), *target = path_of("target"),
		       *fifo = path_of("fifo");

	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(init_with("ipc", NULL), 0);
	trace_open(link);
	assert_false(trace_on(TRACE_IPC));
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(init_with("ipc", NULL), 0);
	trace_open(fifo);
	assert_false(trace_on(TRACE_IPC));
}

static int remove_dir(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -r %s", dir);

	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed_kinds_are_on),
		cmocka_unit_test(unknown_words_are_errors_that_name_the_valid_ones),
		cmocka_unit_test(lines_of_listed_kinds_go_to_the_file),
		cmocka_unit_test(nothing_is_created_while_tracing_is_off),
		cmocka_unit_test(a_forked_process_writes_nothing),
		cmocka_unit_test(full_files_are_renamed_and_the_newest_lines_kept),
		cmocka_unit_test(links_and_fifos_are_not_opened),
	};

	assert_non_null(mkdtemp(dir));
	return cmocka_run_group_tests_name("trace", tests, NULL, remove_dir);
}
