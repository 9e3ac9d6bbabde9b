/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/fs/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void close_is_done_once_and_keeps_errno(void **state)
{
	int fd = dup(0), old = fd;

	errno = EXDEV;
	fd_close(&fd);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fd, -1);
	assert_false(is_open(old));
	errno = EXDEV;
	fd_close(&fd);
	assert_int_equal(errno, EXDEV);
}

static void scope_closes_what_was_not_taken(void **state)
{
	int kept, gone;

	{
		AUTO_CLOSE int a = dup(0);
		AUTO_CLOSE int b = dup(0);

		gone = a;
		kept = TAKE_FD(b);
		assert_int_equal(b, -1);
	}
	assert_false(is_open(gone));
	assert_true(is_open(kept));
	fd_close(&kept);
}

static void flags_go_on_and_off(void **state)
{
	AUTO_CLOSE int fd = dup(0);

	assert_int_equal(fd_set_cloexec(fd, true), 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fd_set_cloexec(fd, false), 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	assert_int_equal(fd_set_cloexec(-1, true), -EBADF);
	assert_int_equal(fd_set_nonblock(-1, true), -EBADF);
}

static void nonblock_is_seen_by_read(void **state)
{
	int p[2];
	char c;

	assert_int_equal(pipe(p), 0);
	assert_int_equal(fd_set_nonblock(p[0], true), 0);
	assert_int_equal(fd_read_full(p[0], &c, 1), -EAGAIN);
	assert_int_equal(fd_set_nonblock(p[0], false), 0);
	assert_int_equal(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
	fd_close(&p[0]);
	fd_close(&p[1]);
}

/* More than a pipe holds, so that both sides see short counts. */
static void whole_buffers_pass_a_pipe(void **state)
{
	static unsigned char out[300000], in[300001];
	int p[2], status;
	pid_t pid;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(i * 31);
	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0)
		_exit(fd_write_all(p[1], out, sizeof(out)) == 0 ? 0 : 1);
	fd_close(&p[1]);
	assert_int_equal(fd_read_full(p[0], in, sizeof(in)), sizeof(out));
	assert_memory_equal(in, out, sizeof(out));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd_close(&p[0]);
}

static void errors_come_back(void **state)
{
	assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(fd_write_all(-1, "", 0), 0);
}

static void a_whole_file_is_read_from_its_beginning(void **state)
{
	static char content[200000];
	char *text = NULL;
	size_t n = 0;
	int fd = memfd_create("fd-test", MFD_CLOEXEC);

	memset(content, 'x', sizeof(content));
	assert_int_equal(fd_write_all(fd, content, sizeof(content)), 0); /* its offset is the end */
	assert_int_equal(fd_load(fd, sizeof(content), &text, &n), 0);
	assert_int_equal(n, sizeof(content));
	assert_memory_equal(text, content, sizeof(content));
	assert_int_equal(text[n], '\0');
	free(text);
	assert_int_equal(fd_load(fd, sizeof(content) - 1, &text, &n), -EFBIG);
	fd_close(&fd);
	assert_int_equal(fd_load(fd, 1, &text, &n), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_is_done_once_and_keeps_errno),
		cmocka_unit_test(scope_closes_what_was_not_taken),
		cmocka_unit_test(flags_go_on_and_off),
		cmocka_unit_test(nonblock_is_seen_by_read),
		cmocka_unit_test(whole_buffers_pass_a_pipe),
		cmocka_unit_test(a_whole_file_is_read_from_its_beginning),
		cmocka_unit_test(errors_come_back),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
