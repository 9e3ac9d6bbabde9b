/* SPDX-License-Identifier: Apache-2.0 */
#include "jtext.h"

#include <errno.h>
#include <strings.h>
#include "lib/base/hex.h"

#define MAX_WORD 64

static int peek_byte(const struct jtext_walk *w)
{
	return w->at < w->text.n ? w->text.p[w->at] : -1;
}

size_t jtext_skip(struct slice t, size_t at)
{
	while (at < t.n &&
		(t.p[at] == ' ' || t.p[at] == '\t' || t.p[at] == '\n' || t.p[at] == '\r'))
		at++;
	return at;
}

/* ---- scalars ---- */

static bool walk_escape(struct jtext_walk *w)
{
	int c = peek_byte(w);

	w->at++;
	if (c != 'u')
		return c > 0 && strchr("\"\\/bfnrt", c);
	for (unsigned i = 0; i < 4; i++, w->at++)
		if (w->at >= w->text.n || hex_digit(w->text.p[w->at]) < 0)
			return false;
	return true;
}

/* From one quote to the byte after the other. */
static bool walk_string(struct jtext_walk *w)
{
	int c;

	if (peek_byte(w) != '"')
		return false;
	w->at++;
	while ((c = peek_byte(w)) != '"') {
		if (c < 0x20)
			return false;
		w->at++;
		if (c == '\\' && !walk_escape(w))
			return false;
	}
	w->at++;
	return true;
}

static size_t walk_digits(struct jtext_walk *w)
{
	size_t from = w->at;

	while (peek_byte(w) >= '0' && peek_byte(w) <= '9')
		w->at++;
	return w->at - from;
}

static bool walk_number(struct jtext_walk *w)
{
	size_t from;

	w->at += peek_byte(w) == '-';
	from = w->at;
	if (!walk_digits(w) || (w->text.p[from] == '0' && w->at - from > 1))
		return false;
	if (peek_byte(w) == '.') {
		w->at++;
		if (!walk_digits(w))
			return false;
	}
	if (peek_byte(w) == 'e' || peek_byte(w) == 'E') {
		w->at++;
		w->at += peek_byte(w) == '+' || peek_byte(w) == '-';
		if (!walk_digits(w))
			return false;
	}
	return true;
}

static bool walk_literal(struct jtext_walk *w)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if (w->text.n - w->at >= n && memcmp(w->text.p + w->at, words[i], n) == 0) {
			w->at += n;
			return true;
		}
	}
	return false;
}

/* ---- values ---- */

static bool enter_value(struct jtext_walk *w, bool is_object)
{
	if (w->depth == w->max_depth)
		return false;
	w->objects &= ~(UINT64_C(1) << w->depth);
	w->objects |= (uint64_t)is_object << w->depth;
	w->depth++;
	w->state = is_object ? JTEXT_FIRST_KEY : JTEXT_FIRST_VALUE;
	w->at++;
	return true;
}

static bool leave_value(struct jtext_walk *w)
{
	w->depth--;
	w->at++;
	w->state = JTEXT_AFTER;
	return true;
}

/* A whole scalar, or the beginning of an object or array. */
static bool walk_value(struct jtext_walk *w, struct jtext_member *ret)
{
	size_t from = w->at;
	int c = peek_byte(w);
	bool ok;

	if (c == '{' || c == '[') {
		ret->kind = c == '{' ? JTEXT_OBJECT : JTEXT_ARRAY;
		ret->value = slice_of(w->text.p + from, 0);
		return enter_value(w, c == '{');
	}
	if (c == '"') {
		ret->kind = JTEXT_STRING;
		ok = walk_string(w);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		ret->kind = JTEXT_NUMBER;
		ok = walk_number(w);
	} else {
		ret->kind = JTEXT_LITERAL;
		ok = walk_literal(w);
	}
	ret->value = slice_of(w->text.p + from, w->at - from);
	w->state = JTEXT_AFTER;
	return ok;
}

static bool walk_member(struct jtext_walk *w, struct jtext_member *ret)
{
	size_t from = w->at + 1;

	if (!walk_string(w))
		return false;
	ret->key = slice_of(w->text.p + from, w->at - 1 - from);
	ret->depth = w->depth;
	w->at = jtext_skip(w->text, w->at);
	if (peek_byte(w) != ':')
		return false;
	w->at = jtext_skip(w->text, w->at + 1);
	return walk_value(w, ret);
}

static bool walk_on(struct jtext_walk *w)
{
	bool is_object = w->objects >> (w->depth - 1) & 1;
	int c = peek_byte(w);

	if (c == ',') {
		w->at++;
		w->state = is_object ? JTEXT_KEY : JTEXT_VALUE;
		return true;
	}
	return c == (is_object ? '}' : ']') && leave_value(w);
}

/* One step; *ret_found if it was a member. */
static bool walk_step(struct jtext_walk *w, struct jtext_member *ret, bool *ret_found)
{
	int c = peek_byte(w);

	switch (w->state) {
	case JTEXT_START:
		return (c == '{' || (c == '[' && w->takes_array)) && enter_value(w, c == '{');
	case JTEXT_FIRST_KEY:
		if (c == '}')
			return leave_value(w);
		*ret_found = true;
		return walk_member(w, ret);
	case JTEXT_KEY:
		*ret_found = true;
		return walk_member(w, ret);
	case JTEXT_FIRST_VALUE:
		return c == ']' ? leave_value(w) : walk_value(w, ret);
	case JTEXT_VALUE:
		return walk_value(w, ret);
	case JTEXT_AFTER:
		return w->depth > 0 && walk_on(w);
	}
	return false;
}

int jtext_next(struct jtext_walk *w, struct jtext_member *ret)
{
	for (;;) {
		bool found = false, is_over = w->state == JTEXT_AFTER && w->depth == 0;

		if (is_over && w->is_part)
			return 0;
		w->at = jtext_skip(w->text, w->at);
		if (is_over && w->at == w->text.n)
			return 0;
		if (!walk_step(w, ret, &found))
			return -EBADMSG;
		if (found)
			return 1;
	}
}

size_t jtext_end(struct slice t, size_t at)
{
	struct jtext_walk w = {.text = t,
		.at = at,
		.max_depth = JTEXT_MAX_DEPTH,
		.is_part = true,
		.state = JTEXT_VALUE};
	struct jtext_member m;
	int r;

	if (!walk_value(&w, &m))
		return 0;
	while ((r = jtext_next(&w, &m)) == 1)
		;
	return r == 0 ? w.at : 0;
}

/* ---- strings ---- */

/* A byte, or the 16 bits of one escape. */
static uint32_t next_unit(struct slice raw, size_t *at, bool *ret_escaped)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	uint8_t c = raw.p[(*at)++];
	const char *found;
	uint32_t unit = 0;

	*ret_escaped = c == '\\';
	if (c != '\\')
		return c;
	c = raw.p[(*at)++];
	found = strchr(from, c);
	if (c != 'u')
		return found && c ? (uint8_t)to[found - from] : c;
	for (unsigned i = 0; i < 4; i++)
		unit = unit << 4 | (uint32_t)hex_digit(raw.p[(*at)++]);
	return unit;
}

/* The other half of a surrogate pair. Returns the character, or 0 if there is no other half. */
static uint32_t join_pair(struct slice raw, size_t *at, uint32_t high)
{
	bool escaped;
	uint32_t low = high < 0xdc00 && *at < raw.n ? next_unit(raw, at, &escaped) : 0;

	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	return 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
}

/* UTF-8. The bytes of a character are never more than those of its escape. */
static size_t put_character(uint8_t out[4], uint32_t c)
{
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (uint8_t)(0x80 | (c & 0x3f));
	out[0] = (uint8_t)(lead[n] | c);
	return n;
}

ssize_t jtext_decode(struct slice raw, uint8_t *buf, size_t size)
{
	size_t n = 0, at = 0;

	while (at < raw.n) {
		bool escaped;
		uint32_t c = next_unit(raw, &at, &escaped);
		uint8_t out[4] = {(uint8_t)c};
		size_t n_out = 1;

		if (c >= 0xd800 && c <= 0xdfff) {
			c = join_pair(raw, &at, c);
			if (c == 0)
				return -EBADMSG;
		}
		if (escaped)
			n_out = put_character(out, c);
		if (size - n < n_out)
			return -EMSGSIZE;
		memcpy(buf + n, out, n_out);
		n += n_out;
	}
	return (ssize_t)n;
}

int jtext_ascii(struct slice raw, uint8_t *buf, size_t size, struct slice *ret)
{
	size_t n = 0, at = 0;
	bool escaped;

	while (at < raw.n) {
		uint32_t c = next_unit(raw, &at, &escaped);

		if (n == size)
			return -EMSGSIZE;
		buf[n++] = c < 0x80 ? (uint8_t)c : 0xff;
	}
	*ret = slice_of(buf, n);
	return 0;
}

bool jtext_is_word(struct slice raw, const char *word)
{
	uint8_t buf[MAX_WORD];
	struct slice text;

	return jtext_ascii(raw, buf, sizeof(buf), &text) == 0 && text.n == strlen(word) &&
	       strncasecmp((const char *)text.p, word, text.n) == 0;
}

void jtext_put_string(struct wr *wr, struct slice text)
{
	wr_u8(wr, '"');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			wr_u8(wr, '\\');
		wr_u8(wr, text.p[i]);
	}
	wr_u8(wr, '"');
}
