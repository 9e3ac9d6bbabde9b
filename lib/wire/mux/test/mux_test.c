/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/mux/mux.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct mux a, b;
static uint8_t block[256 * 1024];

static int setup(void **state)
{
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i * 7 + (i >> 8));
	return 0;
}

static int teardown(void **state)
{
	mux_done(&a);
	mux_done(&b);
	return 0;
}

/* All that `from` has to send, in pieces of n bytes. */
static void carry(struct mux *from, struct mux *to, size_t n)
{
	while (mux_out(from).n) {
		struct slice in = slice_of(mux_out(from).p, MIN(n, mux_out(from).n));
		size_t whole = in.n;

		while (mux_feed(to, &in) == 1)
			;
		assert_false(to->is_broken);
		assert_int_equal(in.n, 0);
		mux_sent(from, whole);
	}
}

static size_t send_text(struct mux_stream *s, const char *text)
{
	return mux_send(s, slice_from_str(text), (struct slice){0});
}

static unsigned events_of(struct mux *m, const struct mux_stream *s)
{
	unsigned events, sum = 0;
	struct mux_stream *next;

	while ((next = mux_next(m, &events)))
		sum |= next == s ? events : 0;
	return sum;
}

static void test_bytes_and_ends(void **state)
{
	for (size_t n = 1; n < 70; n++) {
		struct mux_stream *x = mux_open(&a, 5), *y = mux_open(&b, 5);

		assert_null(mux_open(&a, 5));
		assert_int_equal(send_text(x, "hello"), 5);
		assert_int_equal(mux_send(x, slice_from_str(" wor"), slice_from_str("ld")), 6);
		carry(&a, &b, n);
		assert_int_equal(events_of(&b, y), MUX_READABLE);
		assert_true(slice_eq_str(mux_peek(y), "hello world"));
		mux_take(y, 6);
		assert_true(slice_eq_str(mux_peek(y), "world"));
		assert_false(mux_is_at_end(y));
		mux_shut(x);
		carry(&a, &b, n);
		mux_take(y, 5);
		assert_true(mux_is_at_end(y) && !y->is_gone);
		assert_int_equal(send_text(x, "more"), 0);
		assert_int_equal(send_text(y, "answer"), 6);
		mux_close(y);
		carry(&b, &a, n);
		assert_true(x->is_gone && slice_eq_str(mux_peek(x), "answer"));
		assert_int_equal(events_of(&a, x), MUX_READABLE | MUX_WRITABLE | MUX_GONE);
		mux_close(x);
		carry(&a, &b, n);
		assert_int_equal(a.n_streams + b.n_streams, 0);
	}
}

/* A stream that is not read holds its window and stops no other. */
static void test_a_slow_stream_stops_no_other(void **state)
{
	struct mux_stream *slow = mux_open(&a, 1), *fast = mux_open(&a, 2);
	struct mux_stream *slow_b = mux_open(&b, 1), *fast_b = mux_open(&b, 2);
	size_t n = mux_send(slow, slice_of(block, sizeof(block)), (struct slice){0});

	assert_int_equal(n, MUX_FIRST);
	for (unsigned i = 0; i < 1000; i++) {
		size_t sent = mux_send(fast, slice_of(block, 5000), (struct slice){0});

		carry(&a, &b, 4096);
		assert_int_equal(sent, 5000);
		assert_memory_equal(mux_peek(fast_b).p, block, 5000);
		mux_take(fast_b, 5000);
		carry(&b, &a, 4096);
		assert_int_equal(mux_peek(slow_b).n, MUX_FIRST);
		assert_int_equal(send_text(slow, "x"), 0);
	}
	assert_int_equal(events_of(&a, slow) & MUX_WRITABLE, 0);
	mux_take(slow_b, MUX_FIRST);
	carry(&b, &a, 4096);
	assert_int_equal(events_of(&a, slow), MUX_WRITABLE);
	assert_int_equal(send_text(slow, "x"), 1);
}

static void test_a_window_grows_with_its_reader(void **state)
{
	struct mux_stream *x = mux_open(&a, 1), *y = mux_open(&b, 1);
	size_t n = 0;

	while (n < 4 * MUX_GROWS * MUX_MAX_WINDOW) {
		size_t sent = mux_send(x, slice_of(block, sizeof(block)), (struct slice){0});

		assert_true(sent > 0);
		n += sent;
		carry(&a, &b, SIZE_MAX);
		mux_take(y, mux_peek(y).n);
		carry(&b, &a, SIZE_MAX);
	}
	assert_int_equal(y->window, MUX_MAX_WINDOW);
	assert_int_equal(b.n_shared, MUX_MAX_WINDOW - MUX_FIRST);
	assert_null(y->in);
	/* a reader that leaves most of it gets less again */
	for (unsigned i = 0; i < 16; i++) {
		(void)mux_send(x, slice_of(block, sizeof(block)), (struct slice){0});
		carry(&a, &b, SIZE_MAX);
		mux_take(y, mux_peek(y).n / 3);
		carry(&b, &a, SIZE_MAX);
	}
	assert_true(y->window < MUX_MAX_WINDOW);
	mux_close(y);
	assert_int_equal(b.n_shared, 0);
}

/* While the socket takes nothing, little is kept, and all are told of room. */
static void test_a_full_socket(void **state)
{
	struct mux_stream *s[64];

	for (uint32_t i = 0; i < 64; i++) {
		s[i] = mux_open(&a, i + 1);
		(void)mux_open(&b, i + 1);
		(void)mux_send(s[i], slice_of(block, sizeof(block)), (struct slice){0});
	}
	assert_true(mux_out(&a).n < MUX_OUT + MUX_DATA_MAX + 64 * MUX_HEADER);
	assert_null(mux_next(&a, &(unsigned){0}));
	carry(&a, &b, 1000);
	for (unsigned n = 0, events; n < 50; n++)
		assert_non_null(mux_next(&a, &events));
}

static void test_a_stream_that_is_not_open_is_refused(void **state)
{
	struct mux_stream *x = mux_open(&a, 9), *y;
	struct slice in;

	assert_int_equal(send_text(x, "who?"), 4);
	in = mux_out(&a);
	assert_int_equal(mux_feed(&b, &in), 1);
	assert_int_equal(mux_unknown(&b), 9);
	assert_int_equal(mux_feed(&b, &in), 0); /* not opened meanwhile */
	mux_sent(&a, mux_out(&a).n);
	carry(&b, &a, 1);
	assert_true(x->is_gone);
	assert_int_equal(send_text(x, "still?"), 0);
	mux_close(x);
	/* opened just in time */
	x = mux_open(&a, 10);
	assert_int_equal(send_text(x, "who?"), 4);
	in = mux_out(&a);
	assert_int_equal(mux_feed(&b, &in), 1);
	y = mux_open(&b, 10);
	assert_int_equal(mux_feed(&b, &in), 0);
	assert_true(slice_eq_str(mux_peek(y), "who?"));
	/* what was sent to a stream that is closed meanwhile is refused too, without a fault */
	mux_close(y);
	assert_int_equal(send_text(x, "late"), 4);
	mux_sent(&a, 12); /* the first frame, which was fed */
	while (mux_feed(&b, &in) == 1)
		;
	carry(&a, &b, 1);
	carry(&b, &a, 1);
	assert_false(a.is_broken);
	assert_true(x->is_gone);
}

/* The peer closes it before it is open here: whoever opens it meanwhile learns of it. */
static void test_a_stream_that_is_closed_early(void **state)
{
	struct mux_stream *x = mux_open(&a, 9), *y;
	struct slice in;
	unsigned events;

	mux_close(x);
	in = mux_out(&a);
	assert_int_equal(mux_feed(&b, &in), 1);
	assert_int_equal(mux_unknown(&b), 9);
	y = mux_open(&b, 9);
	assert_int_equal(mux_feed(&b, &in), 0);
	assert_true(y->is_gone);
	assert_ptr_equal(mux_next(&b, &events), y);
	assert_true(events & MUX_GONE);
	mux_sent(&a, mux_out(&a).n);
	/* nobody opens it */
	mux_close(mux_open(&a, 10));
	in = mux_out(&a);
	assert_int_equal(mux_feed(&b, &in), 1);
	assert_int_equal(mux_feed(&b, &in), 0);
	assert_int_equal(mux_out(&b).n, 0);
}

static void test_another_socket_ends_all(void **state)
{
	struct mux_stream *x = mux_open(&a, 1);
	struct slice in = slice_of("\5\0\0\0\1\1", 6);

	assert_int_equal(mux_feed(&a, &in), 0);
	assert_int_equal(send_text(x, "lost"), 4);
	mux_restart(&a);
	assert_int_equal(mux_out(&a).n, 0);
	assert_int_equal(events_of(&a, x), MUX_READABLE | MUX_WRITABLE | MUX_GONE);
	mux_close(x);
	assert_int_equal(mux_out(&a).n, 0);
	x = mux_open(&a, 2);
	(void)mux_open(&b, 2);
	assert_int_equal(send_text(x, "new"), 3);
	carry(&a, &b, 1);
}

#define FRAME(n, kind, id, rest) n "\0\0\0" kind id "\0\0" rest

static void test_violations(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{FRAME("\0", "\1", "\1", ""), 8},  /* no DATA */
		{"\1\100\0\0\1\1\0\0", 8},	   /* too long */
		{FRAME("\1", "\0", "\1", "x"), 9}, /* no kind */
		{FRAME("\1", "\5", "\1", "x"), 9},
		{FRAME("\1", "\1", "\0", "x"), 9}, /* no stream */
		{FRAME("\1", "\3", "\1", "x"), 9}, /* END with a payload */
		{FRAME("\1", "\4", "\1", "x"), 9},
		{FRAME("\3", "\2", "\1", "\1\0\0"), 11},		     /* half a WINDOW */
		{FRAME("\4", "\2", "\1", "\0\0\0\0"), 12},		     /* of nothing */
		{FRAME("\4", "\2", "\1", "\1\0\1\0"), 12},		     /* of too much */
		{FRAME("\0", "\3", "\1", FRAME("\0", "\3", "\1", "")), 16},  /* END twice */
		{FRAME("\0", "\3", "\1", FRAME("\1", "\1", "\1", "x")), 17}, /* DATA after it */
		{FRAME("\0", "\4", "\1", FRAME("\0", "\3", "\1", "")), 16},  /* after RESET */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice in = slice_of(rows[i].bytes, rows[i].n);

		(void)mux_open(&a, 1);
		if (mux_feed(&a, &in) != -EBADMSG)
			fail_msg("row %zu", i);
		in = slice_of("\0\0\0\0\4\1\0\0", 8);
		assert_int_equal(mux_feed(&a, &in), -EBADMSG);
		mux_done(&a);
	}
}

/* More than the window, in frames that are each allowed. */
static void test_more_than_the_window(void **state)
{
	static uint8_t frame[MUX_HEADER + 4096] = {0, 16, 0, 0, MUX_DATA, 1};
	struct slice in;

	(void)mux_open(&a, 1);
	for (unsigned i = 0; i < MUX_FIRST / 4096; i++) {
		in = slice_of(frame, sizeof(frame));
		assert_int_equal(mux_feed(&a, &in), 0);
	}
	in = slice_of(frame, sizeof(frame));
	assert_int_equal(mux_feed(&a, &in), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bytes_and_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_slow_stream_stops_no_other, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_window_grows_with_its_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_full_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_stream_that_is_not_open_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_stream_that_is_closed_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_socket_ends_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_violations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_than_the_window, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
