/* SPDX-License-Identifier: Apache-2.0 */
/* guest_run with a fake sbxd: a guest that prints without end, and one that never exits. */
#include "src/sbx/session/guest_run.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/bufq.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/wire/guestapi/exec_frame.h"

#define FLOOD (64u << 20) /* output of the guest without a limit */

static char dir[64] = "/tmp/sbx-guest-run-XXXXXX";

static int listen_as_sbxd(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sbx/sbxd.sock", dir);
	(void)unlink(addr.sun_path);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static int take_request(int listener)
{
	int fd = accept(listener, NULL, NULL);
	char head[4096] = "";
	size_t n = 0;

	while (!strstr(head, "\r\n\r\n") && n < sizeof(head) - 1) {
		ssize_t k = read(fd, head + n, sizeof(head) - 1 - n);

		if (k <= 0)
			_exit(1);
		n += (size_t)k;
	}
	return fd;
}

static void answer(int fd, const char *text)
{
	if (fd_write_all(fd, text, strlen(text)) < 0)
		_exit(1);
}

/* A client queries the version of sbxd once, on a separate connection. */
static void say_version(int listener)
{
	static const char body[] = "{\"version\":\"" SBX_VERSION "\"}";
	AUTO_FREE char *text =
		xasprintf("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
	AUTO_CLOSE int other = accept(listener, NULL, NULL);
	AUTO_CLOSE int fd = take_request(listener);

	if (other < 0)
		_exit(1);
	answer(fd, text);
}

/* Upgrades and waits for SPEC; later input of the client is not read. */
static int upgrade(int listener)
{
	int fd = take_request(listener);
	char spec[4096];

	answer(fd, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
		   "Upgrade: sbx-stream\r\n\r\n");
	if (read(fd, spec, sizeof(spec)) <= 0)
		_exit(1);
	return fd;
}

static int say(int fd, enum exec_type type, struct slice payload)
{
	struct bufq q;
	struct slice s;
	int r;

	bufq_init(&q, 2 * EXEC_MAX_PAYLOAD);
	if (exec_put_frame(&q, type, payload) < 0)
		_exit(2);
	s = bufq_peek(&q);
	r = fd_write_all(fd, s.p, s.n);
	bufq_done(&q);
	return r;
}

/* Amount of output the guest could print: its exit status, in MiB. */
static pid_t play(int listener, size_t flood)
{
	static uint8_t bytes[EXEC_MAX_PAYLOAD];
	static bool knows_version;
	bool first = !knows_version;
	pid_t pid = fork();
	size_t n = 0;
	int fd;

	knows_version = true;
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	memset(bytes, 'x', sizeof(bytes));
	if (first)
		say_version(listener);
	fd = upgrade(listener);
	(void)say(fd, EXEC_STARTED, slice_of("\1\0\0\0", 4));
	for (; n < flood && say(fd, EXEC_STDOUT, slice_of(bytes, sizeof(bytes))) == 0;
		n += sizeof(bytes))
		;
	if (flood == 0)
		(void)pause();
	_exit((int)(n >> 20));
}

static void more_output_than_the_limit_ends_it(void **state)
{
	static const char *const argv[] = {"sh", NULL};
	struct guest_run g = {.ref = "demo", .argv = argv};
	struct problem p = {0};
	AUTO_CLOSE int listener = listen_as_sbxd();
	pid_t pid = play(listener, FLOOD);
	int status;

	assert_int_equal(guest_run(&g, &p), -EFBIG);
	assert_non_null(strstr(p.err.text, "more than 262144 bytes"));
	free(g.out);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 8);
}

static void a_command_that_does_not_exit_is_left_at_the_deadline(void **state)
{
	static const char *const argv[] = {"sh", NULL};
	struct guest_run g = {.ref = "demo", .argv = argv, .max_ms = 300};
	struct problem p = {0};
	AUTO_CLOSE int listener = listen_as_sbxd();
	pid_t pid = play(listener, 0);
	uint64_t began = clock_mono_ms();

	assert_int_equal(guest_run(&g, &p), -ETIMEDOUT);
	assert_non_null(strstr(p.err.text, "did not exit within"));
	assert_true(clock_mono_ms() - began >= 300);
	free(g.out);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int setup(void **state)
{
	AUTO_FREE char *sub = NULL;

	if (!mkdtemp(dir))
		return -1;
	sub = xasprintf("%s/sbx", dir);
	(void)setenv("XDG_RUNTIME_DIR", dir, 1);
	(void)alarm(60); /* without a limit it would never end */
	return mkdir(sub, 0700);
}

static int teardown(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf '%s'", dir);

	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_output_than_the_limit_ends_it),
		cmocka_unit_test(a_command_that_does_not_exit_is_left_at_the_deadline),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
