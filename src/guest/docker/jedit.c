/* SPDX-License-Identifier: Apache-2.0 */
#include "jedit.h"

#include <ctype.h>
#include <errno.h>
#include "lib/base/hex.h"

static bool is_at(struct slice t, size_t at, char c)
{
	return at < t.n && t.p[at] == (uint8_t)c;
}

static size_t skip_blanks(struct slice t, size_t at)
{
	while (is_at(t, at, ' ') || is_at(t, at, '\t') || is_at(t, at, '\n') || is_at(t, at, '\r'))
		at++;
	return at;
}

bool jedit_is(struct slice t, struct jedit v, char first)
{
	return is_at(t, v.at, first);
}

/* ---- one value that holds no others: its end, or 0 ---- */

static size_t string_end(struct slice t, size_t at)
{
	for (at++; at < t.n && t.p[at] != '"'; at++) {
		if (t.p[at] < ' ')
			return 0;
		if (t.p[at] != '\\')
			continue;
		if (++at >= t.n || !strchr("\"\\/bfnrtu", t.p[at]) || t.p[at] == 0)
			return 0;
		for (unsigned i = 0; t.p[at] == 'u' && i < 4; i++)
			if (at + 1 + i >= t.n || hex_digit(t.p[at + 1 + i]) < 0)
				return 0;
	}
	return at < t.n ? at + 1 : 0;
}

static size_t digits_end(struct slice t, size_t at)
{
	size_t from = at;

	while (at < t.n && isdigit(t.p[at]))
		at++;
	return at > from ? at : 0;
}

static size_t number_end(struct slice t, size_t at)
{
	at += is_at(t, at, '-');
	at = is_at(t, at, '0') ? at + 1 : digits_end(t, at);
	if (at && is_at(t, at, '.'))
		at = digits_end(t, at + 1);
	if (at && (is_at(t, at, 'e') || is_at(t, at, 'E'))) {
		at++;
		at += is_at(t, at, '+') || is_at(t, at, '-');
		at = digits_end(t, at);
	}
	return at;
}

static size_t word_end(struct slice t, size_t at, const char *word)
{
	size_t n = strlen(word);

	return t.n - at >= n && !memcmp(t.p + at, word, n) ? at + n : 0;
}

static size_t plain_end(struct slice t, size_t at)
{
	switch (at < t.n ? t.p[at] : 0) {
	case '"':
		return string_end(t, at);
	case 't':
		return word_end(t, at, "true");
	case 'f':
		return word_end(t, at, "false");
	case 'n':
		return word_end(t, at, "null");
	default:
		return number_end(t, at);
	}
}

/* ---- the whole text ---- */

struct walk {
	struct slice t;
	size_t at;
	unsigned depth;
	char kind[JEDIT_MAX_DEPTH]; /* '{' or '[' for each level */
};

static bool in_object(const struct walk *w)
{
	return w->kind[w->depth - 1] == '{';
}

/* In an object a name and a colon stand before each value. */
static bool take_name(struct walk *w)
{
	if (!in_object(w))
		return true;
	w->at = is_at(w->t, w->at, '"') ? string_end(w->t, w->at) : 0;
	if (w->at)
		w->at = skip_blanks(w->t, w->at);
	if (!w->at || !is_at(w->t, w->at, ':'))
		return false;
	w->at = skip_blanks(w->t, w->at + 1);
	return true;
}

/* Enters what holds values, or steps over what does not. *ret_inside: items come next. */
static bool take_value(struct walk *w, bool *ret_inside)
{
	bool opens = is_at(w->t, w->at, '{') || is_at(w->t, w->at, '[');

	*ret_inside = false;
	if (!opens) {
		w->at = plain_end(w->t, w->at);
		return w->at > 0;
	}
	if (w->depth == JEDIT_MAX_DEPTH)
		return false;
	w->kind[w->depth++] = (char)w->t.p[w->at];
	w->at = skip_blanks(w->t, w->at + 1);
	*ret_inside = !is_at(w->t, w->at, in_object(w) ? '}' : ']');
	return true;
}

/* Behind a value: closes what ends here. *ret_more: a comma was there. */
static bool close_up(struct walk *w, bool *ret_more)
{
	*ret_more = false;
	while (w->depth > 0) {
		w->at = skip_blanks(w->t, w->at);
		if (is_at(w->t, w->at, ',')) {
			w->at = skip_blanks(w->t, w->at + 1);
			*ret_more = true;
			return true;
		}
		if (!is_at(w->t, w->at, in_object(w) ? '}' : ']'))
			return false;
		w->at++;
		w->depth--;
	}
	return true;
}

/* An opened one that is empty is closed by close_up as any other. */
static size_t value_end(struct slice t, size_t at)
{
	struct walk w = {.t = t, .at = at};
	bool inside, more = false;

	if (!take_value(&w, &inside))
		return 0;
	do {
		if (inside || more) {
			if (!take_name(&w) || !take_value(&w, &inside))
				return 0;
			more = false;
		}
		if (!inside && !close_up(&w, &more))
			return 0;
	} while (w.depth > 0);
	return w.at;
}

int jedit_check(struct slice t, struct jedit *ret)
{
	ret->at = skip_blanks(t, 0);
	ret->end = is_at(t, ret->at, '{') ? value_end(t, ret->at) : 0;
	return ret->end == 0 || skip_blanks(t, ret->end) != t.n ? -EBADMSG : 0;
}

/* ---- places in a checked text ---- */

/* The value that begins at or after `at`, behind blanks and one comma; false at the end of v. */
static bool find_value(struct slice t, struct jedit v, size_t at, struct jedit *ret)
{
	at = skip_blanks(t, at);
	if (is_at(t, at, ','))
		at = skip_blanks(t, at + 1);
	if (at >= v.end - 1)
		return false;
	ret->at = at;
	ret->end = value_end(t, at);
	return ret->end > 0;
}

bool jedit_next(struct slice t, struct jedit v, struct jedit *item)
{
	if (!jedit_is(t, v, '['))
		return false;
	return find_value(t, v, item->end ? item->end : v.at + 1, item);
}

bool jedit_member(struct slice t, struct jedit v, const char *name, struct jedit *ret)
{
	struct jedit key, value;
	bool found = false;
	size_t at = v.at + 1;

	if (!jedit_is(t, v, '{'))
		return false;
	while (find_value(t, v, at, &key)) {
		/* behind the colon */
		at = skip_blanks(t, key.end) + 1;
		if (!find_value(t, v, at, &value))
			return false;
		at = value.end;
		if (!slice_eq_str(slice_of(t.p + key.at + 1, key.end - key.at - 2), name))
			continue;
		*ret = value;
		found = true;
	}
	return found;
}

static unsigned hex4_jedit(const uint8_t *p)
{
	unsigned v = 0;

	for (unsigned i = 0; i < 4; i++)
		v = v << 4 | (unsigned)hex_digit(p[i]);
	return v;
}

/* UTF-8 of a \uXXXX; halves of pairs are refused, as no path that matters has them. */
static int put_code(struct wr *wr, unsigned v)
{
	if (v == 0 || (v >= 0xd800 && v < 0xe000))
		return -EINVAL;
	if (v >= 0x800) {
		wr_u8(wr, (uint8_t)(0xe0 | v >> 12));
		wr_u8(wr, (uint8_t)(0x80 | (v >> 6 & 0x3f)));
	} else if (v >= 0x80) {
		wr_u8(wr, (uint8_t)(0xc0 | v >> 6));
	}
	wr_u8(wr, (uint8_t)(v < 0x80 ? v : 0x80 | (v & 0x3f)));
	return 0;
}

int jedit_string(struct slice t, struct jedit v, char *buf, size_t size)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	struct wr wr = wr_init(buf, size);

	if (!jedit_is(t, v, '"'))
		return -EINVAL;
	for (size_t at = v.at + 1; at < v.end - 1; at++) {
		const char *plain;

		if (t.p[at] != '\\') {
			wr_u8(&wr, t.p[at]);
			continue;
		}
		at++;
		if (t.p[at] == 'u') {
			if (put_code(&wr, hex4_jedit(t.p + at + 1)) < 0)
				return -EINVAL;
			at += 4;
			continue;
		}
		plain = strchr(from, t.p[at]);
		wr_u8(&wr, plain ? (uint8_t)to[plain - from] : t.p[at]);
	}
	wr_u8(&wr, 0);
	return wr_finish(&wr) < 0 ? -ENAMETOOLONG : 0;
}

void jedit_quote(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}
