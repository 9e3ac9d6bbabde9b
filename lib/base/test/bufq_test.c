/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/bufq.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"

static void full_means_stop(void **state)
{
	struct bufq q;

	bufq_init(&q, 4);
	assert_int_equal(bufq_put(&q, slice_from_str("abcdef")), 4);
	assert_int_equal(bufq_len(&q), 4);
	assert_int_equal(bufq_space(&q), 0);
	assert_int_equal(bufq_put(&q, slice_from_str("g")), 0);
	assert_true(slice_eq_str(bufq_peek(&q), "abcd"));
	bufq_done(&q);
}

/* Every size, start and length: what goes in comes out, in order, over the edge of the ring. */
static void wraps_at_every_offset(void **state)
{
	for (size_t size = 1; size <= 9; size++)
		for (size_t start = 0; start < size; start++)
			for (size_t n = 0; n <= size + 1; n++) {
				static const uint8_t text[] = "0123456789";
				uint8_t out[16] = {0};
				struct bufq q;
				size_t put;

				bufq_init(&q, size);
				/* A byte that stays keeps the head from going back to the start. */
				assert_int_equal(bufq_put(&q, slice_of(out, size)), size);
				bufq_consume(&q, start);
				put = bufq_put(&q, slice_of(text, n));
				assert_int_equal(put, MIN(n, start));
				assert_int_equal(bufq_take(&q, out, size - start), size - start);
				assert_int_equal(bufq_take(&q, out, sizeof(out)), put);
				assert_memory_equal(out, text, put);
				assert_int_equal(bufq_len(&q), 0);
				bufq_done(&q);
			}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

/* A long random walk against two counters. */
static void random_walk_keeps_order_and_count(void **state)
{
	uint32_t seed = 7;
	uint8_t in = 0, expect = 0;
	struct bufq q;

	bufq_init(&q, 61);
	for (int i = 0; i < 200000; i++) {
		uint8_t buf[80];
		size_t n = next_random(&seed) % sizeof(buf), k, room = bufq_space(&q);

		if (next_random(&seed) & 1) {
			for (size_t j = 0; j < n; j++)
				buf[j] = (uint8_t)(in + j);
			k = bufq_put(&q, slice_of(buf, n));
			assert_int_equal(k, MIN(n, room));
			in = (uint8_t)(in + k);
		} else {
			k = bufq_take(&q, buf, n);
			assert_int_equal(k, MIN(n, 61 - room));
			for (size_t j = 0; j < k; j++)
				assert_int_equal(buf[j], expect++);
		}
	}
	bufq_done(&q);
}

/* NULL + 0 is undefined in C: an idle queue was peeked at that way. */
static void idle_queues_have_no_memory(void **state)
{
	struct bufq q;

	bufq_init(&q, 1 << 20);
	assert_int_equal(bufq_peek(&q).n, 0);
	assert_int_equal(bufq_put(&q, slice_of(NULL, 0)), 0);
	assert_int_equal(bufq_take(&q, &q, 10), 0);
	assert_null(q.ring);
	assert_int_equal(bufq_put(&q, slice_from_str("a")), 1);
	bufq_trim(&q);
	assert_non_null(q.ring);
	bufq_consume(&q, 1);
	bufq_trim(&q);
	assert_null(q.ring);
	assert_int_equal(bufq_put(&q, slice_from_str("b")), 1);
	assert_true(slice_eq_str(bufq_peek(&q), "b"));
	bufq_done(&q);
	bufq_done(&q);
}

static void size_zero_takes_nothing(void **state)
{
	struct bufq q;

	bufq_init(&q, 0);
	assert_int_equal(bufq_put(&q, slice_from_str("a")), 0);
	assert_int_equal(bufq_recv(&q, 0, SIZE_MAX), -ENOBUFS);
	assert_int_equal(bufq_drain(&q, 1), 0);
	bufq_consume(&q, 0);
	bufq_done(&q);
}

static void make_pipe(int p[2])
{
	assert_int_equal(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
}

static void drain_says_what_the_fd_says(void **state)
{
	struct bufq q;

	bufq_init(&q, 4);
	assert_int_equal(bufq_drain(&q, -1), 0);
	assert_int_equal(bufq_put(&q, slice_from_str("abcd")), 4);
	assert_int_equal(bufq_drain(&q, -1), -EBADF);
	assert_int_equal(bufq_len(&q), 4);
	bufq_done(&q);
}

/* The sockets are blocking: a call that waits would never return. */
static void recv_takes_no_more_than_allowed_and_does_not_wait(void **state)
{
	struct bufq q;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	bufq_init(&q, 4);
	assert_int_equal(bufq_recv(&q, p[0], SIZE_MAX), -EAGAIN);
	assert_int_equal(write(p[1], "abcdef", 6), 6);
	assert_int_equal(bufq_recv(&q, p[0], 1), 1);
	assert_int_equal(bufq_recv(&q, p[0], SIZE_MAX), 3);
	assert_int_equal(bufq_recv(&q, p[0], SIZE_MAX), -ENOBUFS);
	assert_true(slice_eq_str(bufq_peek(&q), "abcd"));
	bufq_consume(&q, 4);
	assert_int_equal(bufq_recv(&q, p[0], SIZE_MAX), 2);
	fd_close(&p[1]);
	assert_int_equal(bufq_recv(&q, p[0], SIZE_MAX), 0);
	assert_int_equal(bufq_recv(&q, -1, 1), -EBADF);
	bufq_done(&q);
	fd_close(&p[0]);
}

static void drain_empties_over_the_edge(void **state)
{
	uint8_t out[8];
	struct bufq q;
	int p[2];

	make_pipe(p);
	bufq_init(&q, 4);
	assert_int_equal(bufq_put(&q, slice_from_str("abcd")), 4);
	bufq_consume(&q, 3);
	assert_int_equal(bufq_put(&q, slice_from_str("efg")), 3);
	assert_int_equal(bufq_drain(&q, p[1]), 1);
	assert_int_equal(bufq_drain(&q, p[1]), 3);
	assert_int_equal(bufq_drain(&q, p[1]), 0);
	assert_int_equal(read(p[0], out, sizeof(out)), 4);
	assert_memory_equal(out, "defg", 4);
	fd_close(&p[0]);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(bufq_put(&q, slice_from_str("x")), 1);
	assert_int_equal(bufq_drain(&q, p[1]), -EPIPE);
	bufq_done(&q);
	fd_close(&p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_means_stop),
		cmocka_unit_test(wraps_at_every_offset),
		cmocka_unit_test(random_walk_keeps_order_and_count),
		cmocka_unit_test(idle_queues_have_no_memory),
		cmocka_unit_test(size_zero_takes_nothing),
		cmocka_unit_test(drain_says_what_the_fd_says),
		cmocka_unit_test(recv_takes_no_more_than_allowed_and_does_not_wait),
		cmocka_unit_test(drain_empties_over_the_edge),
	};

	return cmocka_run_group_tests_name("bufq", tests, NULL, NULL);
}
