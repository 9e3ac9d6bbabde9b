/* SPDX-License-Identifier: Apache-2.0 */
/* Part of change.h: characters that deceive a reader. Texts of the guest, no I/O. */
#include <stdio.h>
#include <string.h>

#include "change_internal.h"
#include "lib/base/mem.h"
#include "lib/base/text/text.h"

#define MAX_POINTS 16  /* different invisible characters that are counted */
#define MAX_LOOKUPS 32 /* identifiers that are searched for in the old text */

/* ---- invisible characters ---- */

struct points {
	uint32_t v[MAX_POINTS];
	size_t count[MAX_POINTS];
	size_t n;
};

static void count_point(struct points *p, uint32_t v)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i] != v)
			continue;
		p->count[i]++;
		return;
	}
	if (p->n == MAX_POINTS)
		return;
	p->v[p->n] = v;
	p->count[p->n++] = 1;
}

/* A byte order mark at the beginning, and joiners between pictures, are usual. */
static bool is_usual(uint32_t v, uint32_t before, struct slice after, bool is_first)
{
	uint32_t next = 0;

	if (v == 0xfeff && is_first)
		return true;
	return v == 0x200d && before >= 0x2600 && after.n && text_character(after, &next) &&
	       next >= 0x2600;
}

/* Most texts: every character is visible, and no letter looks like another one. */
static bool is_ascii(struct slice text)
{
	uint64_t all = 0, word;
	size_t i = 0;

	for (; i + sizeof(word) <= text.n; i += sizeof(word)) {
		memcpy(&word, text.p + i, sizeof(word));
		all |= word;
	}
	for (; i < text.n; i++)
		all |= text.p[i];
	return !(all & 0x8080808080808080u);
}

static void count_invisible(struct slice text, struct points *ret)
{
	uint32_t before = 0;
	bool is_first = true;

	*ret = (struct points){0};
	if (is_ascii(text))
		return;
	while (text.n) {
		uint32_t v = 0;
		size_t n = text_character(text, &v);

		(void)slice_take(&text, MAX(n, (size_t)1));
		if (n > 1 && !text_is_visible(v) && !is_usual(v, before, text, is_first))
			count_point(ret, v);
		before = v;
		is_first = false;
	}
}

static size_t count_of(const struct points *p, uint32_t v)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] == v)
			return p->count[i];
	return 0;
}

static void find_invisible(struct slice old, struct slice new, struct change_found *f)
{
	struct points a, b;

	count_invisible(old, &a);
	count_invisible(new, &b);
	for (size_t i = 0; i < b.n; i++) {
		char name[16];

		if (b.count[i] <= count_of(&a, b.v[i]))
			continue;
		(void)snprintf(name, sizeof(name), "U+%04X", (unsigned)b.v[i]);
		change_report(f, CHANGE_UNICODE, slice_from_str(name));
	}
}

/* ---- letters of two scripts in one identifier ---- */

static bool is_latin(uint32_t v)
{
	return (v >= 'a' && v <= 'z') || (v >= 'A' && v <= 'Z');
}

/* Greek letters that look like Latin ones; the others are usual in formulas. */
static bool is_greek_double(uint32_t v)
{
	static const uint16_t list[] = {0x391, 0x392, 0x395, 0x396, 0x397, 0x399, 0x39a, 0x39c,
		0x39d, 0x39f, 0x3a1, 0x3a4, 0x3a5, 0x3a7, 0x3b9, 0x3bd, 0x3bf, 0x3c1, 0x3c5};

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (list[i] == v)
			return true;
	return false;
}

/* Cyrillic, Armenian, Cherokee, full-width and mathematical letters. */
static bool is_double(uint32_t v)
{
	return (v >= 0x400 && v <= 0x52f) || (v >= 0x531 && v <= 0x587) ||
	       (v >= 0x13a0 && v <= 0x13fd) || (v >= 0xff21 && v <= 0xff5a) ||
	       (v >= 0x1d400 && v <= 0x1d7ff) || is_greek_double(v);
}

static bool is_in_identifier(uint32_t v)
{
	return is_latin(v) || (v >= '0' && v <= '9') || v == '_' || v == '$' ||
	       (v >= 0xaa && text_is_visible(v) && !(v >= 0x2000 && v <= 0x2bff) &&
		       !(v >= 0x3000 && v <= 0x3004));
}

/* The identifier at the beginning of *rest; otherwise one character. */
static struct slice take_identifier(struct slice *rest, bool *ret_mixed)
{
	struct slice all = *rest;
	bool latin = false, other = false;
	size_t length = 0;

	while (length < all.n) {
		uint32_t v = 0;
		size_t n = text_character(slice_of(all.p + length, all.n - length), &v);

		if (n == 0 || !is_in_identifier(v))
			break;
		latin |= is_latin(v);
		other |= is_double(v);
		length += n;
	}
	*ret_mixed = latin && other;
	return slice_take(rest, MAX(length, (size_t)1));
}

static void find_mixed(struct slice old, struct slice new, struct change_found *f)
{
	size_t n_lookups = 0;

	while (new.n && !f->is_more) {
		bool mixed = false;
		struct slice word = take_identifier(&new, &mixed);

		if (!mixed)
			continue;
		if (n_lookups++ >= MAX_LOOKUPS || !old.n || !memmem(old.p, old.n, word.p, word.n))
			change_report(f, CHANGE_UNICODE, word);
	}
}

void change_find_characters(struct slice old, struct slice new, struct change_found *f)
{
	find_invisible(old, new, f);
	if (!is_ascii(new))
		find_mixed(old, new, f);
}
