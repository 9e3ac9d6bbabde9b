/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/fs/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dirent.h>
#include <sys/socket.h>
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

static size_t count_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	assert_int_equal(closedir(d), 0);
	return n;
}

static void send_some(int sock, size_t n_fds)
{
	const struct iovec iov = {.iov_base = (char[]){"hello"}, .iov_len = 5};
	int fds[FD_MAX_PASSED];

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = 1;
	assert_int_equal(fd_send(sock, &iov, 1, fds, n_fds, 0), 5);
}

static void descriptors_pass_and_are_cloexec(void **state)
{
	char text[8] = "";
	const struct iovec iov[] = {
		{.iov_base = text, .iov_len = 2}, {.iov_base = text + 2, .iov_len = 6}};
	int pair[2], fds[FD_MAX_PASSED];
	size_t n_fds = FD_MAX_PASSED;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	send_some(pair[0], FD_MAX_PASSED);
	assert_int_equal(fd_recv(pair[1], iov, 2, fds, &n_fds, MSG_DONTWAIT), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(n_fds, FD_MAX_PASSED);
	for (size_t i = 0; i < n_fds; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		fd_close(&fds[i]);
	}
	send_some(pair[0], 0);
	assert_int_equal(fd_recv(pair[1], iov, 2, fds, &n_fds, MSG_DONTWAIT), 5);
	assert_int_equal(n_fds, 0);
	assert_int_equal(fd_recv(pair[1], iov, 2, fds, &n_fds, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(n_fds, 0);
	fd_close(&pair[0]);
	assert_int_equal(fd_recv(pair[1], iov, 2, fds, &n_fds, MSG_DONTWAIT), 0);
	fd_close(&pair[1]);
}

/* CMSG_SPACE of one descriptor has room for two of them. */
static void if_too_many_descriptors_come_none_stays_open(void **state)
{
	char text[8];
	const struct iovec iov = {.iov_base = text, .iov_len = sizeof(text)};
	size_t before, n_fds;
	int pair[2], fd = -1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = count_open();
	for (size_t n = 1; n <= FD_MAX_PASSED; n++) {
		send_some(pair[0], n);
		n_fds = n > 1;
		assert_int_equal(fd_recv(pair[1], &iov, 1, &fd, &n_fds, 0), 5);
		assert_int_equal(n_fds, n > 1 ? 2 : 1);
		assert_int_equal(fd, -1);
		assert_int_equal(count_open(), before);
	}
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void a_packet_that_is_too_large_leaves_no_descriptor(void **state)
{
	char text[4];
	const struct iovec iov = {.iov_base = text, .iov_len = sizeof(text)};
	int pair[2], fd = -1;
	size_t before, n_fds = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = count_open();
	send_some(pair[0], 1);
	assert_int_equal(fd_recv(pair[1], &iov, 1, &fd, &n_fds, 0), -EBADMSG);
	assert_int_equal(fd, -1);
	assert_int_equal(count_open(), before);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	assert_int_equal(fd_send(pair[0], &iov, 1, NULL, 0, 0), -EBADF);
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
		cmocka_unit_test(descriptors_pass_and_are_cloexec),
		cmocka_unit_test(if_too_many_descriptors_come_none_stays_open),
		cmocka_unit_test(a_packet_that_is_too_large_leaves_no_descriptor),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
