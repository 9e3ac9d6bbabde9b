/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "src/guest/exec/exec_ring.h"
#include "lib/base/mem.h"

#define SIZE (128 * 1024)

static void put(struct exec_ring *r, const char *text, uint64_t keep, struct screen *s)
{
	exec_ring_put(r, EXEC_STDOUT, slice_from_str(text), keep, s);
}

/* The payload of complete frames. */
static char *data_of(struct bufq *q)
{
	size_t n = bufq_len(q), k = 0;
	AUTO_FREE uint8_t *raw = xmalloc(n + 1);
	char *text = xcalloc(n + 1, 1);
	struct rd rd;

	assert_int_equal(bufq_take(q, raw, n), n);
	rd = rd_init(slice_of(raw, n));
	while (rd.n > 0) {
		struct slice s;

		(void)rd_u8(&rd);
		s = rd_bytes(&rd, rd_u24(&rd));
		memcpy(text + k, s.p, s.n);
		k += s.n;
	}
	assert_int_equal(rd_finish(&rd), 0);
	return text;
}

static void test_given_again_from_any_frame(void **state)
{
	struct exec_ring r;
	struct bufq q;
	uint64_t second;

	exec_ring_init(&r, 64);
	bufq_init(&q, 4096);
	put(&r, "one", 0, NULL);
	second = r.end;
	put(&r, "two", 0, NULL);
	for (int i = 0; i < 3; i++) {
		AUTO_FREE char *text = NULL;

		assert_int_equal(exec_ring_copy(&r, i ? second : 0, &q, 4096), r.end);
		text = data_of(&q);
		assert_string_equal(text, i ? "two" : "onetwo");
	}
	/* A partial frame is never copied. */
	assert_int_equal(exec_ring_copy(&r, 0, &q, 13), 7);
	exec_ring_drop(&r, second);
	assert_int_equal(r.base, second);
	exec_ring_drop(&r, r.end);
	assert_null(r.buf);
	exec_ring_done(&r);
	bufq_done(&q);
}

/* Unacknowledged output stays: there is no room instead. */
static void test_unacknowledged_is_kept(void **state)
{
	struct exec_ring r;

	exec_ring_init(&r, 32);
	put(&r, "0123456789", 0, NULL);
	assert_int_equal(exec_ring_room(&r, 0), 32 - 14 - 4);
	put(&r, "0123456789", 0, NULL);
	assert_int_equal(exec_ring_room(&r, 0), 0);
	assert_int_equal(exec_ring_room(&r, 14), 14);
	put(&r, "abcdefghijklmn", 14, NULL);
	assert_int_equal(r.base, 14);
	assert_int_equal(exec_ring_room(&r, r.base), 0);
	exec_ring_done(&r);
}

/* The oldest is dropped, the newest stays, and the screen has processed what was dropped. */
static void test_newest_stays(void **state)
{
	struct screen s = {0};
	struct exec_ring r;
	struct bufq q;
	AUTO_FREE char *text = NULL;
	char line[32];

	exec_ring_init(&r, SIZE);
	bufq_init(&q, SIZE + SCREEN_MAX_START);
	put(&r, "\033[?1049h", r.end, &s);
	for (int i = 0; i < 1000000; i++) {
		int n = snprintf(line, sizeof(line), "line %d\r\n", i);

		exec_ring_put(&r, EXEC_STDOUT, slice_of(line, (size_t)n), r.end, &s);
		assert_true(exec_ring_len(&r) <= SIZE);
	}
	assert_true(r.base > 0);
	screen_put_start(&s, &q);
	exec_ring_replay(&r, &s, &q);
	text = xcalloc(bufq_len(&q) + 1, 1);
	(void)bufq_take(&q, text, bufq_len(&q));
	assert_non_null(strstr(text, "\033[?1049h"));
	assert_non_null(strstr(text, "line 999999\r\n"));
	assert_null(strstr(text, "line 1\r\n"));
	exec_ring_done(&r);
	bufq_done(&q);
}

/* Two streams in the order in which they were read, across the wrap of the ring. */
static void test_bytes_are_exact(void **state)
{
	static uint8_t data[EXEC_RING_FRAME];
	struct exec_ring r;
	struct bufq q;
	uint64_t sent = 0, n_in = 0, n_out = 0;
	unsigned seed = 1;

	exec_ring_init(&r, SIZE);
	bufq_init(&q, SIZE);
	while (n_in < 8u << 20) {
		size_t n = (seed = seed * 1103515245 + 12345) / 7 % sizeof(data) + 1;

		n = MIN(n, exec_ring_room(&r, sent));
		for (size_t i = 0; i < n; i++)
			data[i] = (uint8_t)((n_in + i) * 31 >> 3);
		if (n)
			exec_ring_put(&r, seed & 64 ? EXEC_STDOUT : EXEC_STDERR, slice_of(data, n),
				sent, NULL);
		n_in += n;
		sent = exec_ring_copy(&r, sent, &q, bufq_space(&q));
		while (bufq_len(&q)) {
			uint8_t head[EXEC_HEADER], b[EXEC_RING_FRAME];
			size_t k;

			assert_int_equal(bufq_take(&q, head, sizeof(head)), sizeof(head));
			k = (size_t)head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16;
			assert_int_equal(bufq_take(&q, b, k), k);
			for (size_t i = 0; i < k; i++)
				assert_int_equal(b[i], (uint8_t)((n_out + i) * 31 >> 3));
			n_out += k;
		}
	}
	assert_int_equal(n_in, n_out);
	exec_ring_done(&r);
	bufq_done(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_again_from_any_frame),
		cmocka_unit_test(test_unacknowledged_is_kept),
		cmocka_unit_test(test_newest_stays),
		cmocka_unit_test(test_bytes_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
