/* SPDX-License-Identifier: Apache-2.0 */
#include "canon_text.h"

#define IS_DIGIT(c) ((c) >= '0' && (c) <= '9')

#define TOKEN 1 /* a byte of a token */
#define LOWER 2 /* of a token in lower case */
#define VALUE 4 /* of a field's value */
#define ANY (TOKEN | LOWER | VALUE)

/* Every byte of every head is looked up, on both sides of edge. */
static const uint8_t kinds[256] = {
	['\t'] = VALUE,
	[' '] = VALUE,
	['!'] = ANY,
	['"'] = VALUE,
	['#' ... '\''] = ANY,
	['(' ... ')'] = VALUE,
	['*' ... '+'] = ANY,
	[','] = VALUE,
	['-' ... '.'] = ANY,
	['/'] = VALUE,
	['0' ... '9'] = ANY,
	[':' ... '@'] = VALUE,
	['A' ... 'Z'] = TOKEN | VALUE,
	['[' ... ']'] = VALUE,
	['^' ... 'z'] = ANY,
	['{'] = VALUE,
	['|'] = ANY,
	['}'] = VALUE,
	['~'] = ANY,
	[0x80 ... 0xff] = VALUE,
};

static bool has_only(struct slice s, uint8_t kind)
{
	uint8_t all = kind;

	for (size_t i = 0; i < s.n; i++)
		all &= kinds[s.p[i]];
	return all != 0;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

bool canon_text_is_token(struct slice s)
{
	return s.n > 0 && has_only(s, TOKEN);
}

bool canon_text_is_lower_token(struct slice s)
{
	return s.n > 0 && has_only(s, LOWER);
}

bool canon_text_is_value(struct slice s)
{
	return has_only(s, VALUE);
}

bool canon_text_is_trimmed_value(struct slice s)
{
	return canon_text_is_value(s) &&
	       (s.n == 0 || (!is_blank(s.p[0]) && !is_blank(s.p[s.n - 1])));
}

struct slice canon_text_trim(struct slice s)
{
	size_t from = 0, to = s.n;

	while (from < to && is_blank(s.p[from]))
		from++;
	while (to > from && is_blank(s.p[to - 1]))
		to--;
	return canon_text_cut(s, from, to - from);
}

bool canon_text_eq_fold(struct slice a, const char *lower)
{
	if (a.n != strlen(lower))
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (canon_text_lower(a.p[i]) != (uint8_t)lower[i])
			return false;
	return true;
}

bool canon_text_next(struct slice *list, struct slice *ret)
{
	const uint8_t *comma;
	size_t n;

	if (!list->p)
		return false;
	comma = list->n ? memchr(list->p, ',', list->n) : NULL;
	n = comma ? (size_t)(comma - list->p) : list->n;
	*ret = canon_text_trim(canon_text_cut(*list, 0, n));
	*list = comma ? canon_text_cut(*list, n + 1, list->n) : (struct slice){0};
	return true;
}

bool canon_text_list_has(struct slice list, const char *lower)
{
	struct slice item;

	while (canon_text_next(&list, &item))
		if (canon_text_eq_fold(item, lower))
			return true;
	return false;
}

bool canon_text_to_u64(struct slice s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 19)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!IS_DIGIT(s.p[i]))
			return false;
		v = v * 10 + (uint64_t)(s.p[i] - '0');
	}
	*ret = v;
	return true;
}

struct slice canon_text_cut(struct slice s, size_t from, size_t n)
{
	if (from >= s.n)
		return slice_of(s.p, 0);
	return slice_of(s.p + from, MIN(n, s.n - from));
}
