/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <errno.h>
#include <strings.h>
#include "lib/base/hex.h"

#define MAX_WORD 64

static int peek_json(const struct json_walk *w)
{
	return w->at < w->text.n ? w->text.p[w->at] : -1;
}

static void skip_blanks(struct json_walk *w)
{
	int c;

	while ((c = peek_json(w)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		w->at++;
}

/* ---- scalars ---- */

static bool walk_escape(struct json_walk *w)
{
	int c = peek_json(w);

	w->at++;
	if (c != 'u')
		return c > 0 && strchr("\"\\/bfnrt", c);
	for (unsigned i = 0; i < 4; i++, w->at++) {
		if (hex_digit((uint8_t)peek_json(w)) < 0)
			return false;
	}
	return true;
}

/* From one quote to behind the other. */
static bool walk_string(struct json_walk *w)
{
	int c;

	if (peek_json(w) != '"')
		return false;
	w->at++;
	while ((c = peek_json(w)) != '"') {
		if (c < 0x20)
			return false;
		w->at++;
		if (c == '\\' && !walk_escape(w))
			return false;
	}
	w->at++;
	return true;
}

static size_t walk_digits(struct json_walk *w)
{
	size_t from = w->at;

	while (peek_json(w) >= '0' && peek_json(w) <= '9')
		w->at++;
	return w->at - from;
}

static bool walk_number(struct json_walk *w)
{
	size_t from;

	w->at += peek_json(w) == '-';
	from = w->at;
	if (!walk_digits(w) || (w->text.p[from] == '0' && w->at - from > 1))
		return false;
	if (peek_json(w) == '.') {
		w->at++;
		if (!walk_digits(w))
			return false;
	}
	if (peek_json(w) == 'e' || peek_json(w) == 'E') {
		w->at++;
		w->at += peek_json(w) == '+' || peek_json(w) == '-';
		if (!walk_digits(w))
			return false;
	}
	return true;
}

static bool walk_literal(struct json_walk *w)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]);

		if (w->text.n - w->at >= n && memcmp(w->text.p + w->at, words[i], n) == 0) {
			w->at += n;
			return true;
		}
	}
	return false;
}

/* ---- values ---- */

static bool push_json(struct json_walk *w, bool is_object)
{
	if (w->depth == JSON_MAX_DEPTH)
		return false;
	w->depth++;
	w->objects &= ~(UINT64_C(1) << w->depth);
	w->objects |= (uint64_t)is_object << w->depth;
	w->state = is_object ? JSON_FIRST_KEY : JSON_FIRST_VALUE;
	w->at++;
	return true;
}

static void pop_json(struct json_walk *w)
{
	w->depth--;
	w->at++;
	w->state = JSON_AFTER;
}

/* A whole scalar, or the beginning of a container. */
static bool walk_value(struct json_walk *w, struct json_member *ret)
{
	size_t from = w->at;
	int c = peek_json(w);
	bool ok;

	if (c == '{' || c == '[') {
		ret->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
		ret->value = slice_of(w->text.p + from, 0);
		return push_json(w, c == '{');
	}
	if (c == '"') {
		ret->kind = JSON_STRING;
		ok = walk_string(w);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		ret->kind = JSON_NUMBER;
		ok = walk_number(w);
	} else {
		ret->kind = JSON_LITERAL;
		ok = walk_literal(w);
	}
	ret->value = slice_of(w->text.p + from, w->at - from);
	w->state = JSON_AFTER;
	return ok;
}

static bool walk_member(struct json_walk *w, struct json_member *ret)
{
	size_t from = w->at + 1;

	if (!walk_string(w))
		return false;
	ret->key = slice_of(w->text.p + from, w->at - 1 - from);
	ret->depth = w->depth;
	skip_blanks(w);
	if (peek_json(w) != ':')
		return false;
	w->at++;
	skip_blanks(w);
	return walk_value(w, ret);
}

static bool walk_on(struct json_walk *w)
{
	bool is_object = w->objects >> w->depth & 1;
	int c = peek_json(w);

	if (c == ',') {
		w->at++;
		w->state = is_object ? JSON_KEY : JSON_VALUE;
		return true;
	}
	if (c != (is_object ? '}' : ']'))
		return false;
	pop_json(w);
	return true;
}

/* One step; *ret_found when it was a member. */
static bool step_json(struct json_walk *w, struct json_member *ret, bool *ret_found)
{
	int c = peek_json(w);

	switch (w->state) {
	case JSON_START:
		return (c == '{' || (c == '[' && w->takes_array)) && push_json(w, c == '{');
	case JSON_FIRST_KEY:
		if (c == '}') {
			pop_json(w);
			return true;
		}
		*ret_found = true;
		return walk_member(w, ret);
	case JSON_KEY:
		*ret_found = true;
		return walk_member(w, ret);
	case JSON_FIRST_VALUE:
		if (c == ']') {
			pop_json(w);
			return true;
		}
		return walk_value(w, ret);
	case JSON_VALUE:
		return walk_value(w, ret);
	case JSON_AFTER:
		return w->depth > 0 && walk_on(w);
	}
	return false;
}

int json_next(struct json_walk *w, struct json_member *ret)
{
	for (;;) {
		bool found = false;

		skip_blanks(w);
		if (w->state == JSON_AFTER && w->depth == 0 && w->at == w->text.n)
			return 0;
		if (!step_json(w, ret, &found))
			return -EBADMSG;
		if (found)
			return 1;
	}
}

/* ---- texts ---- */

/* The character of an escape, *at behind the backslash. */
static uint8_t take_escape(struct slice raw, size_t *at)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	uint8_t c = raw.p[(*at)++];
	const char *found = strchr(from, c);
	unsigned code = 0;

	if (c != 'u')
		return found && c ? (uint8_t)to[found - from] : c;
	for (unsigned i = 0; i < 4; i++)
		code = code << 4 | (unsigned)hex_digit(raw.p[(*at)++]);
	return code < 0x80 ? (uint8_t)code : 0xff;
}

int json_unescape(struct slice raw, uint8_t *buf, size_t size, struct slice *ret)
{
	size_t n = 0, at = 0;

	while (at < raw.n) {
		uint8_t c = raw.p[at++];

		if (n == size)
			return -EMSGSIZE;
		if (c == '\\')
			c = take_escape(raw, &at);
		buf[n++] = c < 0x80 ? c : 0xff;
	}
	*ret = slice_of(buf, n);
	return 0;
}

bool json_is_word(struct slice raw, const char *word)
{
	uint8_t buf[MAX_WORD];
	struct slice text;

	if (json_unescape(raw, buf, sizeof(buf), &text) < 0 || text.n != strlen(word))
		return false;
	return strncasecmp((const char *)text.p, word, text.n) == 0;
}

void json_put_string(struct wr *wr, struct slice text)
{
	wr_u8(wr, '"');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			wr_u8(wr, '\\');
		wr_u8(wr, text.p[i]);
	}
	wr_u8(wr, '"');
}
