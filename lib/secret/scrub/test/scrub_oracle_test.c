/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "scrub_oracle.h"
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"

#define MAX_TEXT 256

static unsigned n_texts = 30000;
static uint64_t seed = 0x9e3779b97f4a7c15U;

static unsigned below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 20) % n;
}

/* One byte, as it is or in a way that is chosen anew each time, broken now and then. */
static size_t write_byte(char *p, uint8_t c, bool is_digit)
{
	switch (below(24)) {
	case 0:
		return (size_t)sprintf(p, "%%%02x", c);
	case 1:
		return (size_t)sprintf(p, "\\u%04X", c);
	case 2:
		return (size_t)sprintf(p, "&#%u%s", c, below(2) ? ";" : "");
	case 3:
		return (size_t)sprintf(p, "&#x%0*x;", (int)below(12), c);
	case 4:
		return (size_t)sprintf(p, "=%02X", c);
	case 5:
		return (size_t)sprintf(p, "%c=\r\n", c);
	case 6:
		return (size_t)sprintf(p, is_digit ? "%c\r\n " : "%c", c);
	case 7:
		return (size_t)sprintf(p, "\\x%02x", c);
	case 8:
		return below(8) ? (size_t)sprintf(p, "%c", c)
				: (size_t)sprintf(p, "%c", "%\\&=u#;\r\n0"[below(10)]);
	default:
		return (size_t)sprintf(p, "%c", c);
	}
}

/* UTF-32, and now and then one zero too few. */
static size_t write_wide(char *p, uint8_t c)
{
	memset(p, 0, 4);
	p[0] = (char)c;
	return below(64) ? 4 : 3;
}

static size_t write_value(char *p, struct slice v)
{
	static const char std[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", hex[] = "0123456789abcdef";
	static const char *const between[] = {":", " ", "-", ",0x", ", 0x", "; ", "0x", "::", "x"};
	unsigned form = below(9), align = form % 3, n_bits = form == 4 ? 4 : form > 6 ? 5 : 6;
	const char *gap = form == 4 && below(2) ? between[below(ARRAY_LEN(between))] : "";
	uint8_t raw[64] = {'x', 'y', 'z', '0'};
	size_t n = 0;

	if (form == 5) {
		for (size_t i = 0; i < v.n; i++)
			n += write_byte(p + n, below(4) ? v.p[i] : (uint8_t)toupper(v.p[i]), false);
		return n;
	}
	if (form == 6) {
		for (size_t i = 0; i < v.n; i++)
			n += write_wide(p + n, v.p[i]);
		return n;
	}
	if (form == 4)
		align = 0;
	if (n_bits == 5)
		align = below(5);
	memcpy(raw + align, v.p, v.n);
	for (size_t bit = 0; bit < (v.n + align) * 8; bit += n_bits) {
		unsigned two = (unsigned)raw[bit / 8] << 8 | raw[bit / 8 + 1];
		unsigned digit = two >> (16 - n_bits - bit % 8) & ((1U << n_bits) - 1);

		if (bit > 0 && bit % 8 == 0)
			n += (size_t)sprintf(p + n, "%s", gap);
		n += write_byte(p + n,
			(uint8_t)(n_bits == 4	? hex
				  : n_bits == 5 ? base32
						: std)[digit],
			true);
	}
	return n;
}

static size_t write_text(char *text, struct slice v)
{
	size_t n = 0;

	for (unsigned i = below(6); i > 0; i--)
		n += write_byte(text + n, v.p[below((unsigned)v.n)], false);
	n += write_value(text + n, v);
	for (unsigned i = below(6); i > 0; i--)
		n += write_byte(text + n, v.p[i % v.n], false);
	return n;
}

static size_t scrub_in_pieces(const struct scrub_set *set, const char *text, size_t n, uint8_t *out)
{
	struct scrub s;
	size_t n_out = 0;

	scrub_init(&s, set);
	for (size_t at = 0; at < n;) {
		size_t step = 1 + below(20);
		struct slice piece = slice_of(text + at, MIN(step, n - at));

		at += piece.n;
		n_out += scrub_feed(&s, &piece, out + n_out, 8192);
		assert_int_equal(piece.n, 0);
	}
	n_out += scrub_end(&s, out + n_out, 8192);
	scrub_done(&s);
	return n_out;
}

static void compare(
	const struct scrub_set *set, struct slice v, const char *text, size_t n, bool is_exact)
{
	AUTO_FREE uint8_t *covered = xcalloc(1, n + 1), *out = xcalloc(1, n + 8192);

	oracle_cover(slice_of(text, n), v, covered);
	assert_int_equal(scrub_in_pieces(set, text, n, out), n);
	for (size_t i = 0; i < n; i++) {
		bool is_removed = out[i] == '*' && text[i] != '*';

		if (covered[i] ? !is_removed : is_exact && is_removed)
			fail_msg("at %zu of %.*s: oracle %d, scrub %.*s", i, (int)n, text,
				covered[i], (int)n, (char *)out);
	}
}

static void test_agrees_with_the_oracle(void **state)
{
	static const char *const values[] = {
		"aabaabaaab", "Sk-12/34x?>~", "00000000", "a%41&#65;=41", "=\\x5c\\u005c+ "};
	char text[MAX_TEXT * 16];
	size_t n_found = 0;

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct slice v = slice_from_str(values[i]);
		struct scrub_set *set = scrub_set_new(&v, 1, NULL);

		for (unsigned k = 0; k < n_texts / ARRAY_LEN(values); k++) {
			size_t n = write_text(text, v);

			compare(set, v, text, n, oracle_is_exact(v));
			n_found += scrub_text(set, (uint8_t *)text, n) > 0;
		}
		scrub_set_free(set);
	}
	/* Both kinds of texts are many. */
	assert_in_range(n_found, n_texts / 4, n_texts - n_texts / 50);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_the_oracle)};

	if (argc > 1)
		n_texts = (unsigned)strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
