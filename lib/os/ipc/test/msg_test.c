/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/os/ipc/msg.h"

static int pair[2];

static int open_pair(void **state)
{
	return ipc_pair(pair);
}

static int close_pair(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return 0;
}

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void a_message_arrives_with_its_fd(void **state)
{
	struct ipc_msg msg = {.fd = -1};
	int pipe_fds[2];
	char c;

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(ipc_send(pair[0], 7, 0xdeadbeef, slice_from_str("body"), pipe_fds[1]), 0);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.type, 7);
	assert_int_equal(msg.id, 0xdeadbeef);
	assert_true(slice_eq_str(ipc_body(&msg), "body"));
	assert_true(msg.fd >= 0);
	assert_true(fcntl(msg.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(msg.fd, "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], &c, 1), 1);
	ipc_msg_done(&msg);
	assert_int_equal(msg.fd, -1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void sizes_are_bounded(void **state)
{
	static uint8_t big[IPC_MAX_BODY + 1];
	struct ipc_msg msg = {.fd = -1};

	assert_int_equal(ipc_send(pair[0], 1, 1, slice_of(big, sizeof(big)), -1), -EMSGSIZE);
	assert_int_equal(ipc_recv(pair[1], &msg), -EAGAIN);
	assert_int_equal(ipc_send(pair[0], 1, 1, slice_of(big, IPC_MAX_BODY), -1), 0);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.n, IPC_MAX_BODY);
}

static void the_end_and_a_full_queue(void **state)
{
	struct ipc_msg msg = {.fd = -1};
	int r = 0, n = 0;

	while (r == 0 && n < 100000) {
		r = ipc_send(pair[0], 1, 1, slice_of(NULL, 0), -1);
		n += r == 0;
	}
	assert_int_equal(r, -EAGAIN);
	while (n-- > 0)
		assert_int_equal(ipc_recv(pair[1], &msg), 1);
	fd_close(&pair[0]);
	assert_int_equal(ipc_recv(pair[1], &msg), 0);
	assert_int_equal(ipc_send(pair[1], 1, 1, slice_of(NULL, 0), -1), -EPIPE);
}

/* Raw packets, as a peer that does not keep to the rules would send them. */
static void send_raw(const void *p, size_t n, const int *fds, size_t n_fds)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {(void *)p, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		struct cmsghdr *c;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(pair[0], &mh, 0), n);
}

static void broken_packets_are_refused(void **state)
{
	static const struct {
		const char *p;
		size_t n;
	} rows[] = {
		{"\1", 1}, {"\1\0\0\0\0\0\0\0\0\0\0", 11},
		{"\1\0\1\0\0\0\0\0\0\0\0\0", 12},	  /* flags */
		{"\1\0\0\0\0\0\0\0\1\0\0\0", 12},	  /* length too long */
		{"\1\0\0\0\0\0\0\0\0\0\0\0x", 13},	  /* length too short */
		{"\1\0\0\0\0\0\0\0\xff\xff\xff\xff", 12}, /* length absurd */
	};
	static uint8_t big[IPC_HEADER + IPC_MAX_BODY + 1];
	struct ipc_msg msg = {.fd = -1};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		send_raw(rows[i].p, rows[i].n, NULL, 0);
		assert_int_equal(ipc_recv(pair[1], &msg), -EBADMSG);
		assert_int_equal(ipc_parse(slice_of(rows[i].p, rows[i].n), &msg), -EBADMSG);
	}
	send_raw(big, sizeof(big), NULL, 0);
	assert_int_equal(ipc_recv(pair[1], &msg), -EBADMSG);
}

static void fds_of_a_refused_packet_are_closed(void **state)
{
	static const char good[] = "\1\0\0\0\0\0\0\0\0\0\0\0", bad[] = "\1\0\1\0\0\0\0\0\0\0\0\0";
	const int two[] = {0, 1, 2};
	struct ipc_msg msg = {.fd = -1};
	size_t before = count_fds();

	send_raw(good, 12, two, 2);
	assert_int_equal(ipc_recv(pair[1], &msg), -EBADMSG);
	send_raw(good, 12, two, 3);
	assert_int_equal(ipc_recv(pair[1], &msg), -EBADMSG);
	send_raw(bad, 12, two, 1);
	assert_int_equal(ipc_recv(pair[1], &msg), -EBADMSG);
	assert_int_equal(count_fds(), before);
}

static void a_batch_has_all_that_arrived(void **state)
{
	static struct ipc_batch b;
	struct ipc_msg msg = {.fd = -1};
	size_t before = count_fds();

	assert_int_equal(ipc_batch_recv(pair[1], &b), -EAGAIN);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), -EAGAIN);
	for (uint32_t i = 0; i < FD_MAX_MANY + 2; i++)
		assert_int_equal(
			ipc_send(pair[0], 7, i, slice_from_str("body"), i % 2 ? pair[0] : -1), 0);
	for (uint32_t i = 0; i < FD_MAX_MANY + 2; i++) {
		if (i % FD_MAX_MANY == 0)
			assert_int_equal(ipc_batch_recv(pair[1], &b), 0);
		assert_int_equal(ipc_batch_next(pair[1], &b, &msg), 1);
		assert_int_equal(msg.id, i);
		assert_int_equal(msg.fd >= 0, i % 2);
		assert_true(slice_eq_str(ipc_body(&msg), "body"));
		ipc_msg_done(&msg);
	}
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), -EAGAIN);
	assert_int_equal(ipc_batch_recv(pair[1], &b), -EAGAIN);
	assert_int_equal(count_fds(), before);
}

static bool is_wiped(const struct ipc_batch *b)
{
	for (size_t i = 0; i < FD_MAX_MANY; i++)
		for (size_t k = 0; k < sizeof(b->packets[i]); k++)
			if (b->packets[i][k])
				return false;
	return true;
}

/* A peer that breaks the rules, and closes: what was not taken is closed and wiped. */
static void the_rest_of_a_batch(void **state)
{
	static const char good[] = "\1\0\0\0\0\0\0\0\1\0\0\0k";
	static uint8_t big[IPC_HEADER + IPC_MAX_BODY + 1];
	const int three[] = {0, 1, 2};
	static struct ipc_batch b;
	struct ipc_msg msg = {.fd = -1};
	size_t before = count_fds();

	send_raw(good, 13, three, 1);
	send_raw(good, 13, three, 2);
	send_raw(big, sizeof(big), three, 1);
	send_raw(good, 13, three, 3);
	send_raw(good, 13, three, 1);
	assert_int_equal(ipc_batch_recv(pair[1], &b), 0);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), 1);
	ipc_msg_done(&msg);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), -EBADMSG);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), -EBADMSG);
	ipc_batch_done(&b);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), -EAGAIN);
	assert_int_equal(count_fds(), before);
	assert_int_equal(ipc_send(pair[0], 1, 1, slice_of(NULL, 0), -1), 0);
	fd_close(&pair[0]);
	assert_int_equal(ipc_batch_recv(pair[1], &b), 0);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), 1);
	assert_int_equal(ipc_batch_next(pair[1], &b, &msg), 0);
	ipc_batch_done(&b);
	memset(b.packets[2], 0, sizeof(b.packets[2])); /* too large: nothing that we sent */
	assert_true(is_wiped(&b));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		TEST(a_message_arrives_with_its_fd),
		TEST(sizes_are_bounded),
		TEST(the_end_and_a_full_queue),
		TEST(broken_packets_are_refused),
		TEST(fds_of_a_refused_packet_are_closed),
		TEST(a_batch_has_all_that_arrived),
		TEST(the_rest_of_a_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
