/* SPDX-License-Identifier: Apache-2.0 */
#include "scrub_oracle.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"

/* The text decoded in one way, with where each byte ends in the raw text. */
struct decoded {
	uint8_t *c;
	size_t *end;
	bool *is_raw; /* no escape */
	size_t n;
};

enum { PERCENT = 1, BACKSLASH = 2, ENTITY = 4, QUOTED = 8 };

static bool hex_number(struct slice s, size_t at, size_t n, unsigned long *ret)
{
	char digits[16] = "";

	if (n > 15 || at + n > s.n || n == 0)
		return false;
	memcpy(digits, s.p + at, n);
	if (strspn(digits, "0123456789abcdefABCDEF") != n)
		return false;
	*ret = strtoul(digits, NULL, 16);
	return true;
}

static size_t run_of(struct slice s, size_t at, const char *set)
{
	size_t n = 0;

	while (at + n < s.n && s.p[at + n] != 0 && strchr(set, s.p[at + n]))
		n++;
	return n;
}

static size_t read_entity(struct slice s, size_t at, unsigned long *ret)
{
	static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
	bool is_hex = at + 2 < s.n && (s.p[at + 2] == 'x' || s.p[at + 2] == 'X');
	size_t digits = at + 2 + is_hex;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (at + n <= s.n && memcmp(s.p + at, names[i], n) == 0) {
			*ret = (uint8_t) "&<>\"'"[i];
			return n;
		}
	}
	if (at + 1 >= s.n || s.p[at + 1] != '#')
		return 0;
	size_t n = run_of(s, digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789");
	char text[16] = "";

	if (n == 0 || n > 10)
		return 0;
	memcpy(text, s.p + digits, n);
	*ret = strtoul(text, NULL, is_hex ? 16 : 10);
	if (*ret > 127)
		return 0;
	return digits + n - at + (digits + n < s.n && s.p[digits + n] == ';');
}

static size_t read_backslash(struct slice s, size_t at, unsigned long *ret)
{
	if (at + 1 >= s.n)
		return 0;
	switch (s.p[at + 1]) {
	case 'u':
		return hex_number(s, at + 2, 4, ret) && *ret < 128 ? 6 : 0;
	case 'x':
		return hex_number(s, at + 2, 2, ret) ? 4 : 0;
	case 'n':
		*ret = '\n';
		return 2;
	case 'r':
		*ret = '\r';
		return 2;
	case 't':
		*ret = '\t';
		return 2;
	case 'b':
		*ret = '\b';
		return 2;
	case 'f':
		*ret = '\f';
		return 2;
	default:
		*ret = s.p[at + 1];
		return *ret < 128 && ispunct((int)*ret) ? 2 : 0;
	}
}

/* Raw bytes of the escape at `at`, 0 for none; *ret = -1UL for a soft line break. */
static size_t read_escape(struct slice s, size_t at, unsigned ways, unsigned long *ret)
{
	uint8_t c = s.p[at];

	if (c == '%' && ways & PERCENT)
		return hex_number(s, at + 1, 2, ret) ? 3 : 0;
	if (c == '\\' && ways & BACKSLASH)
		return read_backslash(s, at, ret);
	if (c == '&' && ways & ENTITY)
		return read_entity(s, at, ret);
	if (c != '=' || !(ways & QUOTED))
		return 0;
	if (hex_number(s, at + 1, 2, ret))
		return 3;
	*ret = -1UL;
	if (at + 1 < s.n && s.p[at + 1] == '\n')
		return 2;
	return at + 2 < s.n && s.p[at + 1] == '\r' && s.p[at + 2] == '\n' ? 3 : 0;
}

static void decode(struct decoded *d, struct slice s, size_t at, unsigned ways)
{
	size_t begin = at;

	d->n = 0;
	while (at < s.n) {
		unsigned long c = s.p[at];
		size_t n = read_escape(s, at, ways, &c);
		bool is_soft = n > 0 && c == -1UL;

		if (is_soft && at == begin)
			return;
		if (n == 0)
			c = s.p[at];
		at += n ? n : 1;
		if (is_soft)
			continue;
		d->c[d->n] = (uint8_t)c;
		d->is_raw[d->n] = n == 0;
		d->end[d->n++] = at;
	}
}

/* What may stand in front of a byte of hex that is not the first one: 0x, as many raw bytes as
 * here. */
static bool is_prefix(const struct decoded *d, size_t i)
{
	return i + 1 < d->n && d->end[i + 1] == d->end[i] + 1 && d->is_raw[i] && d->is_raw[i + 1] &&
	       d->c[i] == '0' && (d->c[i + 1] == 'x' || d->c[i + 1] == 'X');
}

/* Digits of the decoded text, line ends left out, put together from bit `skip` on and behind the
 * first `pre` bits of the value: true when the value comes out, and where its last digit ends. */
static bool read_digits(const struct decoded *d, struct slice value, const char *alphabet,
	unsigned n_bits, unsigned skip, unsigned pre, size_t *ret_end)
{
	size_t n_want = (skip + value.n * 8 - pre + n_bits - 1) / n_bits, n = 0, gap = 0, got = 0;
	unsigned acc = (unsigned)value.p[0] >> (8 - pre), have = pre;

	for (size_t i = 0; i < d->n && n < n_want; i++) {
		uint8_t c = d->c[i];

		bool is_byte = n_bits == 4 && n > 0 && n % 2 == 0;

		if (is_byte && is_prefix(d, i)) {
			i++;
			continue;
		}
		if (n > 0 && (c == '\r' || c == '\n' || (gap > 0 && (c == ' ' || c == '\t')) ||
				     (is_byte && c && strchr(" ,:;-", c)))) {
			if (++gap > SCRUB_MAX_GAP)
				return false;
			continue;
		}
		const char *at = c ? strchr(alphabet, c) : NULL;

		if (!at)
			return false;
		gap = 0;
		n++;
		unsigned digit = (unsigned)(at - alphabet);

		acc = acc << n_bits | (n_bits == 4 && digit > 15 ? digit - 6
					      : n_bits == 5	 ? digit % 32
								 : digit % 64);
		have += n_bits;
		if (skip && have >= skip) {
			have -= skip;
			skip = 0;
			acc &= (1U << have) - 1;
		}
		if (!skip && have >= 8 && got < value.n) {
			have -= 8;
			if ((acc >> have & 255) != value.p[got++])
				return false;
		}
		acc &= 0xffff;
		*ret_end = d->end[i];
	}
	/* The bits of the last byte may be spread over two digits that are both there by now. */
	return n == n_want && got == value.n;
}

static void cover(uint8_t *covered, size_t from, size_t to)
{
	memset(covered + from, 1, to - from);
}

static void cover_digits(const struct decoded *d, struct slice value, size_t at, uint8_t *covered)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	static const char base32[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567abcdefghijklmnopqrstuvwxyz234567";
	static const char std[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct decoded same;
	uint8_t *c = xmalloc(d->n + 1);
	size_t end = 0;

	if (read_digits(d, value, hex, 4, 0, 0, &end))
		cover(covered, at, end);
	/* A first digit with only some bits of the value is left out, and these bits with it. */
	for (unsigned pre = 0; pre <= 4; pre++)
		if (read_digits(d, value, base32, 5, 0, pre, &end))
			cover(covered, at, end);
	for (size_t i = 0; i < d->n; i++)
		c[i] = d->c[i] == '-' ? '+' : d->c[i] == '_' ? '/' : d->c[i];
	same = (struct decoded){.c = c, .end = d->end, .is_raw = d->is_raw, .n = d->n};
	/* In front of the value: nothing, two bits of a digit, four bits of one. */
	for (unsigned skip = 0; skip <= 4; skip += 2)
		if (read_digits(&same, value, std, 6, skip, 0, &end))
			cover(covered, at, end);
	free(c);
}

static bool is_utf16(struct slice s, size_t at, struct slice value, size_t low)
{
	if (at + value.n * 2 > s.n)
		return false;
	for (size_t i = 0; i < value.n; i++)
		if (tolower(s.p[at + 2 * i + low]) != tolower(value.p[i]) ||
			s.p[at + 2 * i + 1 - low] != 0)
			return false;
	return true;
}

/* From the first byte of the value to the last one, three zeros between two of them. */
static bool is_utf32(struct slice s, size_t at, struct slice value)
{
	if (at + value.n * 4 - 3 > s.n)
		return false;
	for (size_t i = 0; i < value.n * 4 - 3; i++)
		if (tolower(s.p[at + i]) != (i % 4 ? 0 : tolower(value.p[i / 4])))
			return false;
	return true;
}

static bool is_same(const uint8_t *a, struct slice value)
{
	for (size_t i = 0; i < value.n; i++)
		if (tolower(a[i]) != tolower(value.p[i]))
			return false;
	return true;
}

bool oracle_is_exact(struct slice value)
{
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] == 0 || strchr("%\\&=+ ", value.p[i]))
			return false;
	return true;
}

void oracle_cover(struct slice text, struct slice value, uint8_t *covered)
{
	static const unsigned ways[] = {0, PERCENT, BACKSLASH, ENTITY, QUOTED, 15};
	struct decoded d = {.c = xmalloc(text.n + 1),
		.end = xcalloc(text.n + 1, sizeof(size_t)),
		.is_raw = xcalloc(text.n + 1, sizeof(bool))};

	for (size_t at = 0; at < text.n; at++) {
		for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
			decode(&d, text, at, ways[w]);
			if (d.n >= value.n && is_same(d.c, value))
				cover(covered, at, d.end[value.n - 1]);
			cover_digits(&d, value, at, covered);
		}
		for (size_t low = 0; low < 2; low++)
			if (is_utf16(text, at, value, low))
				cover(covered, at, at + value.n * 2);
		if (is_utf32(text, at, value))
			cover(covered, at, at + value.n * 4 - 3);
	}
	free(d.is_raw);
	free(d.c);
	free(d.end);
}
