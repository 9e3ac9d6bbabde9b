/* SPDX-License-Identifier: Apache-2.0 */
/* The program in the guest that passes a link on, against a listener of this test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "src/guest/net/opener.h"

static char dir[64];
static struct sockaddr_un at = {.sun_family = AF_UNIX};

static int up(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/opener_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", dir);
	return 0;
}

static int down(void **state)
{
	(void)unlink(at.sun_path);
	return rmdir(dir);
}

/* A child that reads one text to its end and answers; its status is 0 if the text was right. */
static pid_t serve(const char *expected, const char *answer)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid = fork();
	if (pid == 0) {
		int conn = accept(fd, NULL, NULL);
		char got[256];
		size_t n = 0;
		ssize_t r;

		while ((r = read(conn, got + n, sizeof(got) - 1 - n)) > 0)
			n += (size_t)r;
		got[n] = '\0';
		(void)!write(conn, answer, strlen(answer));
		_exit(strcmp(got, expected) != 0);
	}
	(void)close(fd);
	return pid;
}

/* The socket of the guest is the one of this test. */
int __real_connect(int fd, const struct sockaddr *to, socklen_t n);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t n);

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t n)
{
	assert_string_equal(((const struct sockaddr_un *)to)->sun_path, OPENER_SOCKET);
	return __real_connect(fd, (const struct sockaddr *)&at, sizeof(at));
}

/* Runs the program; `printed` is what it wrote to stderr. */
static int run_opener(const char *arg, char printed[512])
{
	char name[] = "xdg-open", *argv[] = {name, (char *)arg, NULL};
	int saved = dup(2), fds[2], status;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], 2), 2);
	status = opener_main(arg ? 2 : 1, argv);
	assert_int_equal(dup2(saved, 2), 2);
	(void)close(saved);
	(void)close(fds[1]);
	n = read(fds[0], printed, 511);
	printed[n > 0 ? n : 0] = '\0';
	(void)close(fds[0]);
	return status;
}

static void must_print(const char *text, const char *answer, int expected, const char *printed)
{
	char got[512];
	pid_t pid = serve(text, answer);
	int status;

	assert_int_equal(run_opener(text, got), expected);
	assert_string_equal(got, printed);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)unlink(at.sun_path);
}

static void the_link_is_sent_and_the_answer_printed(void **state)
{
	must_print("https://a.example/", "+shown\n", 0, "shown\n");
	must_print("file:///x", "-no\n", 4, "error: no\n");
}

static void a_host_that_sends_nothing_is_a_failure(void **state)
{
	char got[512], text[OPENER_MAX + 2];

	must_print("https://a.example/", "", 4,
		"error: cannot pass the link to the host: Protocol error\n");
	must_print("https://a.example/", "x\n", 4,
		"error: cannot pass the link to the host: Protocol error\n");
	assert_int_equal(run_opener("https://a.example/", got), 4); /* nobody listens */
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(run_opener(text, got), 4);
	assert_int_equal(run_opener("--help", got), 1);
	assert_int_equal(run_opener(NULL, got), 1);
	assert_non_null(strstr(got, "usage: "));
}

static void names_select_it(void **state)
{
	char *yes[] = {(char *)"/usr/local/bin/xdg-open", NULL}, *open[] = {(char *)"open", NULL},
	     *no[] = {(char *)"/init", NULL};

	assert_true(opener_is(1, yes));
	assert_true(opener_is(1, open));
	assert_false(opener_is(1, no));
	assert_false(opener_is(0, no));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_link_is_sent_and_the_answer_printed),
		cmocka_unit_test(a_host_that_sends_nothing_is_a_failure),
		cmocka_unit_test(names_select_it),
	};

	return cmocka_run_group_tests(tests, up, down);
}
