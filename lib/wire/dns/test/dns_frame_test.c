/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/wire/dns/dns_frame.h"
#include "lib/base/mem.h"

/* Bytes in; the messages, then "." between two, ">" inside one, "!" after a violation. */
static const struct {
	const char *in;
	size_t n;
	const char *want;
} rows[] = {
	{"", 0, "."},
	{"\0\3abc", 5, "abc ."},
	{"\0\3abc\0\1x", 8, "abc x ."},
	{"\0", 1, ">"},
	{"\0\3ab", 4, ">"},
	{"\0\1a\0\2b", 6, "a >"},
	{"\0\0", 2, "!"},
	{"\0\1a\0\0\0\1b", 8, "a !"},
	{"\x08\1", 2, "!"},
	{"\xff\xff", 2, "!"},
	{"\x08\0z", 3, ">"},
};

static void feed(struct dns_frame *f, const char *p, size_t n, char *got, size_t size)
{
	AUTO_FREE uint8_t *copy = xmalloc(n ? n : 1);
	struct slice in = slice_of(copy, n), msg;

	memcpy(copy, p, n);
	while (dns_frame_feed(f, &in, &msg) == 1)
		snprintf(got + strlen(got), size - strlen(got), "%.*s ", (int)msg.n,
			(const char *)msg.p);
	assert_true(f->bad || in.n == 0);
}

static void play(size_t row, size_t a, size_t step)
{
	char got[64] = "";
	struct dns_frame f;

	dns_frame_init(&f);
	feed(&f, rows[row].in, a, got, sizeof(got));
	for (size_t i = a; i < rows[row].n; i += step)
		feed(&f, rows[row].in + i, MIN(step, rows[row].n - i), got, sizeof(got));
	strcat(got, f.bad ? "!" : f.n_head > 0 ? ">" : ".");
	if (strcmp(got, rows[row].want) != 0)
		fail_msg("row %zu, split %zu, step %zu: %s", row, a, step, got);
}

static void test_plays(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		play(i, rows[i].n, 1);
		play(i, 0, 1);
		for (size_t a = 0; a < rows[i].n; a++)
			play(i, a, rows[i].n);
	}
}

static void test_longest_message_in_two_pieces(void **state)
{
	AUTO_FREE uint8_t *bytes = xcalloc(1, 2 + DNS_MAX_QUERY);
	struct slice in = slice_of(bytes, 1000), msg;
	struct dns_frame f;

	dns_frame_head(bytes, DNS_MAX_QUERY);
	bytes[2 + DNS_MAX_QUERY - 1] = 7;
	dns_frame_init(&f);
	assert_int_equal(dns_frame_feed(&f, &in, &msg), 0);
	in = slice_of(bytes + 1000, 2 + DNS_MAX_QUERY - 1000);
	assert_int_equal(dns_frame_feed(&f, &in, &msg), 1);
	assert_int_equal(msg.n, DNS_MAX_QUERY);
	assert_int_equal(msg.p[DNS_MAX_QUERY - 1], 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plays),
		cmocka_unit_test(test_longest_message_in_two_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
