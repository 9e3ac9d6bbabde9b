/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/secret/scrub/scrub.h"
#include "lib/base/mem.h"

#define MAX_TEXT 4096
#define CANARY "sk-ab/C+9?~Zq>" /* has digits 62 and 63 at every alignment of its base64 */

/* A text being written, and where the value stands in it. */
struct text {
	uint8_t p[MAX_TEXT];
	size_t n;
	size_t begin, end;
};

static void put(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	t->n += (size_t)vsnprintf((char *)t->p + t->n, sizeof(t->p) - t->n, fmt, ap);
	va_end(ap);
	assert_true(t->n < sizeof(t->p));
}

static void put_byte(struct text *t, uint8_t c)
{
	t->p[t->n++] = c;
}

/* ---- the ways to write a value ---- */

struct way {
	const char *name;
	void (*write)(struct text *t, struct slice v, unsigned arg);
	unsigned arg;
};

static void write_plain(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put_byte(t, v.p[i]);
}

/* arg: 0 lower, 1 upper, 2 mixed, 3 lines of 6 digits */
static void write_hex(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++) {
		put(t, arg == 1 || (arg == 2 && i % 2) ? "%02X" : "%02x", v.p[i]);
		if (arg == 3 && i % 3 == 2 && i + 1 < v.n)
			put(t, "\n");
	}
}

/* Every byte, or every second one from `arg & 1` on when arg has 2. */
static bool is_escaped(size_t i, unsigned arg)
{
	return !(arg & 2) || (i & 1) == (arg & 1);
}

static void write_percent(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, !is_escaped(i, arg) ? "%c" : arg & 4 ? "%%%02X" : "%%%02x", v.p[i]);
}

static void write_unicode(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, !is_escaped(i, arg) ? "%c" : arg & 4 ? "\\u%04X" : "\\u%04x", v.p[i]);
}

static void write_backslash_x(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, is_escaped(i, arg) ? "\\x%02x" : "%c", v.p[i]);
}

static void write_json(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, strchr("/\"\\", v.p[i]) ? "\\%c" : "%c", v.p[i]);
}

/* Markdown, regular expressions and shells have a backslash before any punctuation. */
static void write_punctuation(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, v.p[i] < 128 && ispunct(v.p[i]) ? "\\%c" : "%c", v.p[i]);
}

static void write_entity(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, !is_escaped(i, arg) ? "%c" : arg & 4 ? "&#%03u;" : "&#x%x;", v.p[i]);
}

static void write_named(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++)
		put(t, v.p[i] == '>' ? "&gt;" : v.p[i] == '/' ? "&#x2F;" : "%c", v.p[i]);
}

/* arg has 8: with soft line breaks */
static void write_quoted(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++) {
		put(t, is_escaped(i, arg) ? "=%02X" : "%c", v.p[i]);
		if (arg & 8 && i == v.n / 2)
			put(t, i % 2 ? "=\r\n" : "=\n");
	}
}

/* One digit of base64 as it looks in another text. */
static void put_digit(struct text *t, char c, unsigned arg)
{
	if (arg & 8 && (c == '+' || c == '/' || c == '='))
		put(t, "%%%02X", (unsigned)c);
	else if (arg & 16 && c == '/')
		put(t, "\\/");
	else if (arg & 4 && (c == '+' || c == '/'))
		put_byte(t, c == '+' ? '-' : '_');
	else
		put_byte(t, (uint8_t)c);
}

/* arg & 3: bytes in front; 4: other alphabet; 8: percent; 16: JSON, lines end with \n as text;
 * 32: lines of CR LF; 64: no padding; 128: a byte follows */
static void write_base64(struct text *t, struct slice v, unsigned arg)
{
	static const char std[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t raw[256] = {'x', 'y'};
	size_t n = arg & 3, digit = 0;

	memcpy(raw + n, v.p, v.n);
	size_t first = n * 8 / 6, last = ((n + v.n) * 8 + 5) / 6;

	n += v.n;
	if (arg & 128)
		raw[n++] = 0xff;
	for (size_t bit = 0; bit < n * 8; bit += 6, digit++) {
		unsigned two = (unsigned)raw[bit / 8] << 8 | raw[bit / 8 + 1];

		if (digit == first)
			t->begin = t->n;
		put_digit(t, std[two >> (10 - bit % 8) & 63], arg);
		if (digit + 1 == last)
			t->end = t->n;
		if (arg & (16 | 32) && digit % 5 == 4 && digit + 1 < last)
			put(t, "%s", arg & 16 ? "\\n" : "\r\n");
	}
	for (; !(arg & 64) && digit % 4; digit++)
		put_digit(t, '=', arg);
}

static void write_utf16(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++) {
		put_byte(t, arg ? 0 : v.p[i]);
		put_byte(t, arg ? v.p[i] : 0);
	}
}

/* arg: 0 upper, 1 lower, 2 each letter in the other case */
static void write_case(struct text *t, struct slice v, unsigned arg)
{
	for (size_t i = 0; i < v.n; i++) {
		bool to_upper = arg == 0 || (arg == 2 && islower(v.p[i]));

		put_byte(t, (uint8_t)(to_upper ? toupper(v.p[i]) : tolower(v.p[i])));
	}
}

static void write_utf32(struct text *t, struct slice v, unsigned arg)
{
	t->begin = t->n + (arg ? 3 : 0);
	for (size_t i = 0; i < v.n; i++)
		for (unsigned k = 0; k < 4; k++)
			put_byte(t, k == (arg ? 3 : 0) ? v.p[i] : 0);
	t->end = t->n - (arg ? 0 : 3);
}

static void write_hex_apart(struct text *t, struct slice v, unsigned arg)
{
	static const char *const between[] = {":", " ", "-", ",0x", ", 0x", "0X", " : "};

	for (size_t i = 0; i < v.n; i++)
		put(t, "%s%02x", i ? between[arg] : "", v.p[i]);
}

/* arg & 7: bytes in front; 8: lower case; 16: lines */
static void write_base32(struct text *t, struct slice v, unsigned arg)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	uint8_t raw[256] = {'x', 'y', 'z', '0'};
	size_t n = arg & 7, digit = 0, last = ((n + v.n) * 8 + 4) / 5;
	size_t first = (n * 8 + 4) / 5; /* that has bits of the value only */

	memcpy(raw + n, v.p, v.n);
	for (size_t bit = 0; bit < (n + v.n) * 8; bit += 5, digit++) {
		unsigned two = (unsigned)raw[bit / 8] << 8 | raw[bit / 8 + 1];
		char c = digits[two >> (11 - bit % 8) & 31];

		if (digit == first)
			t->begin = t->n;
		put_byte(t, (uint8_t)(arg & 8 ? tolower(c) : c));
		if (digit + 1 == last)
			t->end = t->n;
		if (arg & 16 && digit % 5 == 4 && digit + 1 < last)
			put(t, "\n");
	}
}

static const struct way ways[] = {
	{"plain", write_plain, 0},
	{"upper case", write_case, 0},
	{"lower case", write_case, 1},
	{"cases changed", write_case, 2},
	{"utf-32le", write_utf32, 0},
	{"utf-32be", write_utf32, 1},
	{"hex with :", write_hex_apart, 0},
	{"hex with blanks", write_hex_apart, 1},
	{"hex with -", write_hex_apart, 2},
	{"hex with ,0x", write_hex_apart, 3},
	{"hex with , and 0x", write_hex_apart, 4},
	{"hex with 0X", write_hex_apart, 5},
	{"hex with more", write_hex_apart, 6},
	{"base32", write_base32, 0},
	{"base32 after one byte", write_base32, 1},
	{"base32 after two bytes", write_base32, 2},
	{"base32 after three bytes", write_base32, 3},
	{"base32 after four bytes", write_base32, 4},
	{"base32 lower, in lines", write_base32, 8 | 16 | 1},
	{"hex lower", write_hex, 0},
	{"hex upper", write_hex, 1},
	{"hex mixed", write_hex, 2},
	{"hex in lines", write_hex, 3},
	{"percent lower", write_percent, 0},
	{"percent upper", write_percent, 4},
	{"percent even", write_percent, 2},
	{"percent odd", write_percent, 3},
	{"json unicode lower", write_unicode, 0},
	{"json unicode upper", write_unicode, 4},
	{"json unicode even", write_unicode, 2},
	{"json unicode odd", write_unicode, 3},
	{"json short", write_json, 0},
	{"backslash before punctuation", write_punctuation, 0},
	{"backslash x", write_backslash_x, 0},
	{"html hex", write_entity, 0},
	{"html decimal", write_entity, 4},
	{"html even", write_entity, 2},
	{"html odd", write_entity, 7},
	{"html names", write_named, 0},
	{"quoted-printable", write_quoted, 0},
	{"quoted-printable even", write_quoted, 2},
	{"quoted-printable odd", write_quoted, 3},
	{"quoted-printable soft breaks", write_quoted, 2 | 8},
	{"utf-16le", write_utf16, 0},
	{"utf-16be", write_utf16, 1},
	{"base64", write_base64, 0},
	{"base64 after one byte", write_base64, 1},
	{"base64 after two bytes", write_base64, 2},
	{"base64 before a byte", write_base64, 128},
	{"base64 between bytes", write_base64, 1 | 128},
	{"base64url", write_base64, 4},
	{"base64url after one byte, bare", write_base64, 1 | 4 | 64},
	{"base64url after two bytes, bare", write_base64, 2 | 4 | 64},
	{"base64 in lines", write_base64, 32},
	{"base64 in lines after one byte", write_base64, 1 | 32},
	{"base64 in lines after two bytes", write_base64, 2 | 32},
	{"base64 in json", write_base64, 16},
	{"base64 in json after two bytes", write_base64, 2 | 16},
	{"base64 in a url", write_base64, 8},
	{"base64 in a url after one byte", write_base64, 1 | 8},
};

/* ---- running it ---- */

static struct scrub_set *set_of(const char *a, const char *b)
{
	struct slice values[2] = {slice_from_str(a)};

	if (b)
		values[1] = slice_from_str(b);
	struct scrub_set *set = scrub_set_new(values, b ? 2 : 1, NULL);

	assert_non_null(set);
	return set;
}

struct run {
	struct scrub s;
	uint8_t out[MAX_TEXT];
	size_t n;
};

static void feed(struct run *r, const uint8_t *p, size_t n, size_t room)
{
	struct slice in = slice_of(p, n);

	for (int i = 0; i < MAX_TEXT && in.n > 0; i++)
		r->n += scrub_feed(&r->s, &in, r->out + r->n, MIN(room, sizeof(r->out) - r->n));
	assert_int_equal(in.n, 0);
}

static void finish(struct run *r, size_t room)
{
	struct slice none = {0};
	size_t n;

	while ((n = scrub_feed(&r->s, &none, r->out + r->n, room)) > 0)
		r->n += n;
	while ((n = scrub_end(&r->s, r->out + r->n, room)) > 0)
		r->n += n;
	assert_int_equal(r->s.n_hold, 0);
	scrub_done(&r->s);
}

/* In three pieces, through an output of `room` bytes. */
static void run_pieces(const struct scrub_set *set, const struct text *t, size_t a, size_t b,
	size_t room, const uint8_t *want)
{
	struct run r;

	scrub_init(&r.s, set);
	r.n = 0;
	feed(&r, t->p, a, room);
	feed(&r, t->p + a, b - a, room);
	feed(&r, t->p + b, t->n - b, room);
	finish(&r, room);
	assert_int_equal(r.n, t->n);
	if (memcmp(r.out, want, t->n) != 0)
		fail_msg("cut at %zu and %zu: %.*s", a, b, (int)r.n, (const char *)r.out);
}

static void make(struct text *t, const struct way *way, const char *head, const char *value,
	const char *tail)
{
	*t = (struct text){0};
	put(t, "%s", head);
	size_t begin = t->n;

	way->write(t, slice_from_str(value), way->arg);
	if (t->end == 0) {
		t->begin = begin;
		t->end = t->n;
	}
	put(t, "%s", tail);
}

static void expect(const struct text *t, uint8_t *want)
{
	memcpy(want, t->p, t->n);
	memset(want + t->begin, '*', t->end - t->begin);
}

static void test_every_way_at_every_cut(void **state)
{
	struct scrub_set *set = set_of(CANARY, NULL);
	struct text t;
	uint8_t want[MAX_TEXT];

	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		/* Heads that end as the value begins, tails that look as if it went on. */
		const char *const ends[][2] = {
			{"{\"k\":\"", "\"}"}, {"", ""}, {"s!", "!"}, {"!sk-", "!sk-a"}};

		for (size_t e = 0; e < ARRAY_LEN(ends); e++) {
			make(&t, &ways[w], ends[e][0], CANARY, ends[e][1]);
			expect(&t, want);
			for (size_t a = 0; a <= t.n; a++)
				for (size_t b = a; b <= t.n; b += e ? MAX(t.n - a, 1) : 1)
					run_pieces(set, &t, a, b, MAX_TEXT, want);
			run_pieces(set, &t, 3 % (t.n + 1), t.n / 2 + 2, 1, want);
		}
	}
	scrub_set_free(set);
}

static void test_byte_by_byte(void **state)
{
	struct scrub_set *set = set_of(CANARY, NULL);

	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		struct text t;
		uint8_t want[MAX_TEXT];
		struct run r = {.n = 0};

		make(&t, &ways[w], "Hello, ", CANARY, " and more");
		expect(&t, want);
		scrub_init(&r.s, set);
		for (size_t i = 0; i < t.n; i++)
			feed(&r, t.p + i, 1, MAX_TEXT);
		assert_int_equal(r.s.n_hits, 1);
		finish(&r, MAX_TEXT);
		assert_int_equal(r.n, t.n);
		assert_memory_equal(r.out, want, t.n);
	}
	scrub_set_free(set);
}

static void check_text(const struct scrub_set *set, const char *in, const char *want, uint64_t hits)
{
	size_t n = strlen(in);
	uint8_t *text = (uint8_t *)xstrdup(in);

	assert_int_equal(scrub_text(set, text, n), hits);
	assert_string_equal((char *)text, want);
	free(text);
}

static void test_whole_texts(void **state)
{
	struct scrub_set *set = set_of("abcabcabc", "token-abcabcabc-token");

	check_text(set, "", "", 0);
	check_text(set, "abcabcab", "abcabcab", 0);
	check_text(set, "xabcabcabcx", "x*********x", 1);
	check_text(set, "abcabcabcabc-", "************-", 1); /* two that overlap */
	check_text(set, "abcabcabcabcabcabc", "******************", 1);
	check_text(set, "<token-abcabcabc-token>", "<*********************>", 1);
	check_text(set, "<token-abcabcabc-toke>", "<token-*********-toke>", 1);
	check_text(set, "abcabcabc, abcabcabc", "*********, *********", 2);
	check_text(set, "abcabc%61bc %61bcabcabc", "*********** ***********", 2);
	check_text(set, "abc\nabcabc", "abc\nabcabc", 0); /* lines end in digits only */
	scrub_set_free(set);
}

/* Values that hold what looks like an escape, plain and written in other ways. */
static void test_values_with_escapes_in_them(void **state)
{
	static const char *const values[] = {
		"100%25off%%%41", "a=3D&amp;b=41", "\\u0041\\\\x\\/", "a b+c%20d e"};

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct scrub_set *set = set_of(values[i], NULL);

		for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
			struct text t;
			uint8_t want[MAX_TEXT];

			if (ways[w].arg & 2 && ways[w].write != write_base64 &&
				ways[w].write != write_hex)
				continue; /* every second byte of an escape is no encoding */
			make(&t, &ways[w], "<", values[i], ">");
			expect(&t, want);
			run_pieces(set, &t, t.n / 3, t.n / 2, MAX_TEXT, want);
		}
		scrub_set_free(set);
	}
}

/* As in the body of a form. */
static void test_a_space_written_as_plus(void **state)
{
	struct scrub_set *set = set_of("open sesame now", NULL);

	check_text(set, "q=open+sesame+now.", "q=***************.", 1);
	check_text(set, "open+sesame%20now.", "*****************.", 1);
	check_text(set, "open sesame+now.", "***************.", 1);
	check_text(set, "open-sesame+now.", "open-sesame+now.", 0);
	scrub_set_free(set);
}

static void test_mixed_ways(void **state)
{
	struct scrub_set *set = set_of("Secret/Value", NULL);

	check_text(set, "S%65c\\u0072&#101;t\\/V=61lue.", "***************************.", 1);
	check_text(set, "U2VjcmV0\\/1ZhbHVl", "U2VjcmV0\\/1ZhbHVl", 0);
	check_text(set, "U2Vj%63mV0L1Z\\u0068bHVl", "***********************", 1);
	check_text(set, "5\\u0033656372&#x36;5742f56616c7565", "**********************************",
		1);
	scrub_set_free(set);
}

static void test_what_is_kept_back(void **state)
{
	struct scrub_set *set = set_of(CANARY, NULL);
	struct run r = {.n = 0};

	scrub_init(&r.s, set);
	feed(&r, (const uint8_t *)"data: !\n\n", 9, MAX_TEXT);
	assert_int_equal(r.n, 9);
	feed(&r, (const uint8_t *)"s", 1, MAX_TEXT);
	assert_int_equal(r.n, 9);
	feed(&r, (const uint8_t *)"kipped\n", 7, MAX_TEXT);
	assert_int_equal(r.n, 15); /* a digit and the end of its line */
	r.n += scrub_idle(&r.s, r.out + r.n, MAX_TEXT);
	assert_int_equal(r.n, 17);
	feed(&r, (const uint8_t *)CANARY, strlen(CANARY) - 1, MAX_TEXT);
	r.n += scrub_idle(&r.s, r.out + r.n, MAX_TEXT);
	assert_int_equal(r.n, 17);
	finish(&r, MAX_TEXT);
	assert_memory_equal(r.out + 17, CANARY, strlen(CANARY) - 1);
	scrub_set_free(set);
}

/* The beginning of an entity waits, and the whole value behind it with it. */
static void test_idle_behind_an_unfinished_entity(void **state)
{
	struct scrub_set *set = set_of("12345678", NULL);
	struct run r = {.n = 0};

	scrub_init(&r.s, set);
	feed(&r, (const uint8_t *)"&#12345678", 10, MAX_TEXT);
	r.n += scrub_idle(&r.s, r.out + r.n, MAX_TEXT);
	assert_int_equal(r.n, 0);
	finish(&r, MAX_TEXT);
	assert_memory_equal(r.out, "&#********", 10);
	scrub_set_free(set);
}

/* A pause gives out at most the first bytes, and what follows is still found. */
static void test_idle(void **state)
{
	struct scrub_set *set = set_of(CANARY, NULL);
	struct run r = {.n = 0};

	scrub_init(&r.s, set);
	for (size_t i = 0; i < strlen(CANARY); i++) {
		feed(&r, (const uint8_t *)CANARY + i, 1, MAX_TEXT);
		r.n += scrub_idle(&r.s, r.out + r.n, sizeof(r.out) - r.n);
		assert_int_equal(r.n, i + 1 < strlen(CANARY) ? MIN(i + 1, SCRUB_IDLE_SHOW) : i + 1);
	}
	feed(&r, (const uint8_t *)"s", 1, MAX_TEXT);
	r.n += scrub_idle(&r.s, r.out + r.n, sizeof(r.out) - r.n);
	feed(&r, (const uint8_t *)"o.", 2, MAX_TEXT);
	finish(&r, MAX_TEXT);
	assert_int_equal(r.n, strlen(CANARY) + 3);
	assert_memory_equal(r.out, "sk************so.", r.n);
	scrub_set_free(set);
}

static void test_short_and_long_values(void **state)
{
	struct slice many[SCRUB_MAX_VALUES + 1];
	AUTO_FREE uint8_t *big = xcalloc(1, SCRUB_MAX_VALUE + 1);
	struct scrub_set *set = set_of("1234567", "12345678");

	assert_false(scrub_is_searched(slice_from_str("1234567")));
	assert_true(scrub_is_searched(slice_from_str("12345678")));
	check_text(set, "1234567 12345678", "1234567 ********", 1);
	scrub_set_free(set);
	set = scrub_set_new(NULL, 0, NULL);
	check_text(set, "1234567 12345678", "1234567 12345678", 0);
	scrub_set_free(set);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = slice_from_str("12345678");
	assert_null(scrub_set_new(many, ARRAY_LEN(many), NULL));
	many[0] = slice_of(big, SCRUB_MAX_VALUE + 1);
	assert_null(scrub_set_new(many, 1, NULL));
}

/* The longest value in the dearest way that still fits, one byte more does not, and memory is
 * bounded when a text agrees with the value without end. */
static void test_the_bound(void **state)
{
	const size_t n = SCRUB_MAX_VALUE, room = SCRUB_MAX_HOLD * 4;
	AUTO_FREE uint8_t *value = xmalloc(n), *in = xmalloc(room), *out = xmalloc(room * 2);
	struct slice one = slice_of(value, n);
	struct scrub s;

	for (size_t i = 0; i < n; i++)
		value[i] = (uint8_t)('a' + i * i % 23);
	struct scrub_set *set = scrub_set_new(&one, 1, NULL);

	for (unsigned digits = 4; digits <= 10; digits += 6) {
		size_t n_in = 0, n_out = 0;

		for (size_t i = 0; i < n; i++)
			n_in += (size_t)sprintf(
				(char *)in + n_in, "&#%0*u;", (int)digits, value[i]);
		scrub_init(&s, set);
		for (size_t i = 0; i < n_in;) {
			struct slice piece = slice_of(in + i, MIN(997, n_in - i));

			i += piece.n;
			n_out += scrub_feed(&s, &piece, out + n_out, room * 2 - n_out);
			assert_int_equal(piece.n, 0);
			assert_true(s.n_hold <= SCRUB_MAX_HOLD);
		}
		n_out += scrub_end(&s, out + n_out, room * 2 - n_out);
		assert_int_equal(n_out, n_in);
		assert_int_equal(s.n_hits, digits == 4);
		assert_int_equal(memcmp(in, out, n_in) == 0, digits == 10);
		scrub_done(&s);
	}
	scrub_set_free(set);
}

static uint64_t random64(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* 100 MiB without the value pass unchanged: random bytes and random digits. */
static void test_nothing_else_is_changed(void **state)
{
	enum { PIECE = 1 << 18, N = 400 };
	AUTO_FREE uint8_t *in = xmalloc(PIECE), *out = xmalloc(PIECE + SCRUB_MAX_HOLD);
	struct scrub_set *set = set_of(CANARY, "another-Value_0123456789");
	uint64_t seed = 88172645463325252U;
	struct scrub s;
	size_t n_kept = 0;
	uint8_t kept[64];

	scrub_init(&s, set);
	for (unsigned k = 0; k < N; k++) {
		for (size_t i = 0; i < PIECE; i += 8) {
			uint64_t r = random64(&seed);

			if (k % 2) /* printable */
				r = (r & 0x3f3f3f3f3f3f3f3fU) + 0x2020202020202020U;
			memcpy(in + i, &r, 8);
		}
		struct slice piece = slice_of(in, PIECE);
		size_t n = scrub_feed(&s, &piece, out, PIECE + SCRUB_MAX_HOLD);

		assert_int_equal(n + s.n_hold, n_kept + PIECE);
		assert_memory_equal(out, kept, MIN(n_kept, n));
		assert_memory_equal(out + n_kept, in, n - n_kept);
		n_kept = s.n_hold;
		assert_true(n_kept <= sizeof(kept));
		memcpy(kept, in + PIECE - n_kept, n_kept);
	}
	assert_int_equal(s.n_hits, 0);
	scrub_done(&s);
	scrub_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_way_at_every_cut),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_whole_texts),
		cmocka_unit_test(test_values_with_escapes_in_them),
		cmocka_unit_test(test_a_space_written_as_plus),
		cmocka_unit_test(test_mixed_ways),
		cmocka_unit_test(test_what_is_kept_back),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_behind_an_unfinished_entity),
		cmocka_unit_test(test_short_and_long_values),
		cmocka_unit_test(test_the_bound),
		cmocka_unit_test(test_nothing_else_is_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
