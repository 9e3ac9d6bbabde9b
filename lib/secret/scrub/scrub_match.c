/* SPDX-License-Identifier: Apache-2.0 */
#include "scrub_internal.h"

#include <ctype.h>
#include "lib/base/b64.h"
#include "lib/base/hex.h"

/* Ways to write one byte as several. */
enum {
	WAY_PERCENT = 1,
	WAY_BACKSLASH = 2,
	WAY_ENTITY = 4,
	WAY_QUOTED = 8,
	WAY_ALL = 15,
};

enum kind {
	KIND_LITERAL,
	KIND_ESCAPED,
	KIND_NOTHING, /* a soft line break: it represents no byte */
	KIND_MORE,
};

struct unit {
	enum kind kind;
	uint8_t c;
	size_t n; /* raw bytes */
};

#define MAX_DIGITS 10 /* of an entity, zeros in front included */

static const struct unit literal = {.kind = KIND_LITERAL, .n = 1}, more = {.kind = KIND_MORE};

/* A letter is itself in either case. */
static uint8_t fold_match(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* `n` raw bytes that represent c. Code points above 127 represent no single byte. */
static struct unit escaped_match(uint32_t c, size_t n)
{
	return c < 256 ? (struct unit){.kind = KIND_ESCAPED, .c = (uint8_t)c, .n = n} : literal;
}

/* What is missing decides, unless nothing will come. */
static struct unit cut_match(const struct scrub_look *look)
{
	return look->last ? literal : more;
}

/* `n_digits` hexadecimal digits after `n_head` bytes. */
static struct unit hex_escape(
	const struct scrub_look *look, size_t at, size_t n_head, size_t n_digits, uint32_t max)
{
	uint32_t c = 0;

	for (size_t i = 0; i < n_digits; i++) {
		if (at + n_head + i >= look->n)
			return cut_match(look);
		int digit = hex_digit(look->p[at + n_head + i]);

		if (digit < 0)
			return literal;
		c = c << 4 | (uint32_t)digit;
	}
	return c <= max ? escaped_match(c, n_head + n_digits) : literal;
}

static struct unit backslash_match(const struct scrub_look *look, size_t at)
{
	static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";

	if (at + 1 >= look->n)
		return cut_match(look);
	uint8_t c = look->p[at + 1];

	if (c == 'u')
		return hex_escape(look, at, 2, 4, 127);
	if (c == 'x')
		return hex_escape(look, at, 2, 2, 255);
	const char *name = c ? strchr(names, c) : NULL;

	if (name)
		return escaped_match((uint8_t)bytes[name - names], 2);
	return c < 128 && ispunct(c) ? escaped_match(c, 2) : literal;
}

/* &#65; &#x41; and, as browsers read it, without the semicolon. */
static struct unit numeric_entity(const struct scrub_look *look, size_t at)
{
	size_t i = at + 2, begin;
	uint64_t base = 10, c = 0;

	if (i >= look->n)
		return cut_match(look);
	if ((look->p[i] | 0x20) == 'x') {
		base = 16;
		i++;
	}
	for (begin = i; i < look->n; i++) {
		int digit = hex_digit(look->p[i]);

		if (digit < 0 || digit >= (int)base)
			break;
		if (i - begin == MAX_DIGITS)
			return literal;
		c = c * base + (uint64_t)digit;
	}
	if (i >= look->n && !look->last)
		return more;
	if (i == begin || c > 127)
		return literal;
	if (i < look->n && look->p[i] == ';')
		i++;
	return escaped_match((uint32_t)c, i - at);
}

static struct unit named_entity(const struct scrub_look *look, size_t at)
{
	static const struct {
		const char *name;
		uint8_t c;
	} names[] = {
		{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i].name), there = MIN(n, look->n - at);

		if (memcmp(look->p + at, names[i].name, there) != 0)
			continue;
		return there == n ? escaped_match(names[i].c, n) : cut_match(look);
	}
	return literal;
}

static struct unit entity_match(const struct scrub_look *look, size_t at)
{
	if (at + 1 < look->n && look->p[at + 1] == '#')
		return numeric_entity(look, at);
	return named_entity(look, at);
}

static struct unit quoted_match(const struct scrub_look *look, size_t at)
{
	if (at + 1 >= look->n)
		return cut_match(look);
	if (look->p[at + 1] == '\n')
		return (struct unit){.kind = KIND_NOTHING, .n = 2};
	if (look->p[at + 1] != '\r')
		return hex_escape(look, at, 1, 2, 255);
	if (at + 2 >= look->n)
		return cut_match(look);
	return look->p[at + 2] == '\n' ? (struct unit){.kind = KIND_NOTHING, .n = 3} : literal;
}

static unsigned way_of(uint8_t c)
{
	switch (c) {
	case '%':
		return WAY_PERCENT;
	case '\\':
		return WAY_BACKSLASH;
	case '&':
		return WAY_ENTITY;
	case '=':
		return WAY_QUOTED;
	default:
		return 0;
	}
}

/* The byte at `at`, at < look->n, in these encodings. */
static struct unit unescape_match(const struct scrub_look *look, size_t at, unsigned ways)
{
	switch (way_of(look->p[at]) & ways) {
	case WAY_PERCENT:
		return hex_escape(look, at, 1, 2, 255);
	case WAY_BACKSLASH:
		return backslash_match(look, at);
	case WAY_ENTITY:
		return entity_match(look, at);
	case WAY_QUOTED:
		return quoted_match(look, at);
	default:
		return literal;
	}
}

/* One byte of the value: raw bytes that it takes, SCRUB_NO or SCRUB_MORE. An escape of another byte
 * may be a literal '%'. */
static ssize_t match_byte(
	const struct scrub_look *look, size_t at, uint8_t want, unsigned ways, bool is_first)
{
	size_t begin = at;

	while (at < look->n && at <= SCRUB_MAX_HIT) {
		struct unit u = unescape_match(look, at, ways);

		if (u.kind == KIND_MORE)
			return SCRUB_MORE;
		if (u.kind == KIND_NOTHING && !is_first) {
			at += u.n;
			continue;
		}
		if (u.kind == KIND_ESCAPED && fold_match(u.c) == fold_match(want))
			return (ssize_t)(at + u.n - begin);
		if (fold_match(look->p[at]) == fold_match(want) ||
			(ways & WAY_PERCENT && want == ' ' && look->p[at] == '+'))
			return (ssize_t)(at + 1 - begin);
		return SCRUB_NO;
	}
	return at > SCRUB_MAX_HIT || look->last ? SCRUB_NO : SCRUB_MORE;
}

static ssize_t undecided_match(struct scrub_look *look, size_t depth)
{
	look->depth = MAX(look->depth, depth);
	return SCRUB_MORE;
}

static ssize_t match_plain_ways(struct scrub_look *look, struct slice value, unsigned ways)
{
	size_t at = 0;

	for (size_t k = 0; k < value.n; k++) {
		ssize_t r = match_byte(look, at, value.p[k], ways, k == 0);

		if (r <= 0)
			return r == SCRUB_MORE ? undecided_match(look, k) : SCRUB_NO;
		at += (size_t)r;
	}
	return (ssize_t)at;
}

/* A value may itself hold what looks like an escape, so each way is tried alone and all together.
 * Mostly none of them differs in the first bytes, and one try is enough. */
static ssize_t match_plain(struct scrub_look *look, struct slice value)
{
	static const unsigned ways[] = {
		WAY_ALL, WAY_PERCENT, WAY_BACKSLASH, WAY_ENTITY, WAY_QUOTED};
	size_t same = 0;

	while (same < value.n && same < look->n &&
		fold_match(look->p[same]) == fold_match(value.p[same]))
		same++;
	if (same < look->n && same < value.n && way_of(look->p[same]) == 0 &&
		!(look->p[same] == '+' && value.p[same] == ' ')) {
		bool has_way = false;

		for (size_t k = 0; k < same && !has_way; k++)
			has_way = way_of(value.p[k]) != 0;
		if (!has_way)
			return SCRUB_NO;
	}
	ssize_t best = match_plain_ways(look, value, 0);

	for (size_t i = 0; best != SCRUB_MORE && i < ARRAY_LEN(ways); i++) {
		ssize_t r = match_plain_ways(look, value, ways[i]);

		best = r == SCRUB_MORE ? r : MAX(best, r);
	}
	return best;
}

static int base32_digit(uint8_t c)
{
	if (c >= '2' && c <= '7')
		return c - '2' + 26;
	c |= 0x20;
	return c >= 'a' && c <= 'z' ? c - 'a' : -1;
}

/* The digits of a value: what the k-th must be, in the bits of `mask`. */
struct digits {
	struct slice value;
	unsigned align; /* bytes in front of the value that share its group of digits */
	unsigned n_bits;
	size_t first, n; /* the digits from that group on that have bits of the value */
};

struct digit {
	uint8_t want, mask;
};

static struct digits digits_of(struct slice value, enum scrub_form form)
{
	struct digits d = {.value = value, .n_bits = 4};

	if (form >= SCRUB_BASE32) {
		d.n_bits = 5;
		d.align = (unsigned)form - SCRUB_BASE32;
	} else if (form != SCRUB_HEX) {
		d.n_bits = 6;
		d.align = (unsigned)form - SCRUB_BASE64;
	}
	d.first = d.align * 8 / d.n_bits;
	/* A digit that has only some bits of the value would begin in too many texts: it is left
	 * as it is. */
	d.first += d.n_bits == 5 && d.align * 8 % 5 > 0;
	d.n = ((value.n + d.align) * 8 + d.n_bits - 1) / d.n_bits - d.first;
	return d;
}

static struct digit digit_at(const struct digits *d, size_t k)
{
	/* Two bytes, of which the digit is some bits; those outside of the value are not known. */
	size_t bit = (k + d->first) * d->n_bits, byte = bit / 8;
	unsigned want = 0, mask = 0, shift = (unsigned)(16 - d->n_bits - bit % 8);
	unsigned all = (1U << d->n_bits) - 1;

	for (size_t i = byte; i <= byte + 1; i++) {
		bool is_known = i >= d->align && i - d->align < d->value.n;

		want = want << 8 | (is_known ? d->value.p[i - d->align] : 0);
		mask = mask << 8 | (is_known ? 255 : 0);
	}
	return (struct digit){(uint8_t)(want >> shift & all), (uint8_t)(mask >> shift & all)};
}

static int read_digit(const struct digits *d, uint8_t c)
{
	return d->n_bits == 4 ? hex_digit(c) : d->n_bits == 5 ? base32_digit(c) : b64_url_digit(c);
}

/* Allowed between two digits: white space that begins with the end of a line; between two bytes of
 * hex also the usual separators. */
static bool is_gap(const struct digits *d, size_t k, uint8_t c, size_t n_gap)
{
	if (c == '\r' || c == '\n' || (n_gap > 0 && (c == ' ' || c == '\t')))
		return true;
	return d->n_bits == 4 && k % 2 == 0 && c != 0 && strchr(" ,:;-", c);
}

/* 0x in front of a byte of hex: its two bytes, 0 if absent, SCRUB_MORE if not known yet. */
static ssize_t prefix_at(const struct scrub_look *look, size_t at, const struct digits *d, size_t k)
{
	if (d->n_bits != 4 || k % 2 || k == 0 || look->p[at] != '0')
		return 0;
	if (at + 1 == look->n)
		return look->last ? 0 : SCRUB_MORE;
	return (look->p[at + 1] | 0x20) == 'x' ? 2 : 0;
}

static ssize_t match_digits(struct scrub_look *look, const struct digits *d)
{
	size_t at = 0, k = 0, n_gap = 0;

	while (k < d->n && at < look->n && at <= SCRUB_MAX_HIT) {
		struct unit u = unescape_match(look, at, WAY_ALL);
		uint8_t c = u.kind == KIND_ESCAPED ? u.c : look->p[at];
		ssize_t prefix = prefix_at(look, at, d, k);

		if (u.kind == KIND_MORE || prefix == SCRUB_MORE)
			return undecided_match(look, k);
		at += prefix ? (size_t)prefix : u.n;
		if (prefix || (k > 0 && u.kind == KIND_NOTHING))
			continue;
		if (k > 0 && is_gap(d, k, c, n_gap)) {
			if (++n_gap > SCRUB_MAX_GAP)
				return SCRUB_NO;
			continue;
		}
		int got = read_digit(d, c);
		struct digit want = digit_at(d, k);

		if (got < 0 || (got & want.mask) != want.want)
			return SCRUB_NO;
		n_gap = 0;
		k++;
	}
	if (k == d->n)
		return (ssize_t)at;
	return at > SCRUB_MAX_HIT || look->last ? SCRUB_NO : undecided_match(look, k);
}

/* Each byte in a character of `width`, at place `at` of it; zeros around it. */
static ssize_t match_wide(
	struct scrub_look *look, struct slice value, size_t width, size_t at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i >= look->n)
			return look->last ? SCRUB_NO : undecided_match(look, i / width);
		if (fold_match(look->p[i]) !=
			(i % width == at ? fold_match(value.p[i / width]) : 0))
			return SCRUB_NO;
	}
	return (ssize_t)n;
}

ssize_t scrub_match_form(struct scrub_look *look, struct slice value, enum scrub_form form)
{
	if (form == SCRUB_PLAIN)
		return match_plain(look, value);
	if (form == SCRUB_UTF16LE || form == SCRUB_UTF16BE)
		return match_wide(look, value, 2, form == SCRUB_UTF16BE, 2 * value.n);
	if (form == SCRUB_UTF32)
		return match_wide(look, value, 4, 0, 4 * value.n - 3);
	struct digits d = digits_of(value, form);

	return match_digits(look, &d);
}

/* The forms to try. If an escape is here, its byte `u` must begin one too, or the escape's own
 * first byte is meant. */
static unsigned forms_at(
	const struct scrub_value *v, const struct scrub_look *look, const struct unit *u)
{
	unsigned forms = UINT16_MAX, as_byte = 0;

	for (size_t i = 0; i < SCRUB_N_TABLES && i < look->n; i++)
		forms &= v->forms[i][look->p[i]];
	if (!u || u->kind == KIND_MORE)
		return forms;
	if (fold_match(v->bytes.p[0]) == fold_match(look->p[0]))
		as_byte = 1U << SCRUB_PLAIN | 1U << SCRUB_UTF16LE | 1U << SCRUB_UTF32;
	return forms & ((u->kind == KIND_ESCAPED ? v->forms[0][u->c] : 0) | as_byte);
}

ssize_t scrub_match(const struct scrub_set *set, struct scrub_look *look)
{
	bool has_way = way_of(look->p[0]) != 0;
	struct unit u = has_way ? unescape_match(look, 0, WAY_ALL) : literal;
	ssize_t best = SCRUB_NO;

	for (size_t v = 0; v < set->n_values; v++) {
		unsigned forms = forms_at(&set->values[v], look, has_way ? &u : NULL);

		for (unsigned form = 0; forms; form++, forms >>= 1) {
			if (!(forms & 1))
				continue;
			ssize_t r = scrub_match_form(look, set->values[v].bytes, form);

			if (r == SCRUB_MORE || best == SCRUB_MORE)
				best = SCRUB_MORE; /* and on: look->depth is the deepest */
			else
				best = MAX(best, r);
		}
	}
	return best;
}
