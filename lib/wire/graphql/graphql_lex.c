/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "graphql_internal.h"

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool begins_name(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

struct lexer {
	struct slice text;
	size_t at;
	const char *why;
};

/* -1 at the end. */
static int peek_byte(const struct lexer *lx, size_t ahead)
{
	return lx->at + ahead < lx->text.n ? lx->text.p[lx->at + ahead] : -1;
}

/* Length of the character at the place: 0 if it must not be in a document. Older editions end a
 * line at U+2028 and U+2029, and some editors at U+0085: a comment would be over for them. */
static size_t char_len(const struct lexer *lx)
{
	int c = peek_byte(lx, 0), second = peek_byte(lx, 1), third = peek_byte(lx, 2);
	size_t n = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (c < 0x80)
		return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0x7f);
	for (size_t i = 1; i < n; i++)
		if ((peek_byte(lx, i) & 0xc0) != 0x80 || peek_byte(lx, i) < 0)
			return 0;
	if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
		(c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f))
		return 0;
	if ((c == 0xc2 && second < 0xa0) || (c == 0xe2 && second == 0x80 && third / 2 == 0x54))
		return 0;
	return n;
}

static int fail_lex(struct lexer *lx, const char *why)
{
	lx->why = why;
	return -EBADMSG;
}

static int skip_ignored(struct lexer *lx)
{
	for (;;) {
		int c = peek_byte(lx, 0);

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',') {
			lx->at++;
		} else if (c == '#') {
			while (peek_byte(lx, 0) >= 0 && peek_byte(lx, 0) != '\n' &&
				peek_byte(lx, 0) != '\r') {
				size_t n = char_len(lx);

				if (n == 0)
					return fail_lex(lx, "invalid character in a comment");
				lx->at += n;
			}
		} else {
			return 0;
		}
	}
}

static int take_digits(struct lexer *lx)
{
	if (!is_digit(peek_byte(lx, 0)))
		return fail_lex(lx, "invalid number");
	while (is_digit(peek_byte(lx, 0)))
		lx->at++;
	return 0;
}

static int take_number(struct lexer *lx)
{
	int r, c;

	lx->at += peek_byte(lx, 0) == '-';
	if (peek_byte(lx, 0) == '0' && is_digit(peek_byte(lx, 1)))
		return fail_lex(lx, "invalid number");
	r = take_digits(lx);
	if (r == 0 && peek_byte(lx, 0) == '.') {
		lx->at++;
		r = take_digits(lx);
	}
	if (r == 0 && (peek_byte(lx, 0) | 0x20) == 'e') {
		lx->at += 1 + (peek_byte(lx, 1) == '+' || peek_byte(lx, 1) == '-');
		r = take_digits(lx);
	}
	c = peek_byte(lx, 0);
	return r < 0 || (c != '.' && !begins_name(c)) ? r : fail_lex(lx, "invalid number");
}

static int take_escape(struct lexer *lx)
{
	int c = peek_byte(lx, 1);

	if (c == 'u') {
		for (size_t i = 2; i < 6; i++) {
			int d = peek_byte(lx, i) | 0x20;

			if (!is_digit(peek_byte(lx, i)) && (d < 'a' || d > 'f'))
				return fail_lex(lx, "invalid escape in a string");
		}
		lx->at += 6;
		return 0;
	}
	if (c <= 0 || !strchr("\"\\/bfnrt", c))
		return fail_lex(lx, "invalid escape in a string");
	lx->at += 2;
	return 0;
}

static int take_string(struct lexer *lx)
{
	int r = 0;

	lx->at++;
	while (r == 0 && peek_byte(lx, 0) != '"') {
		size_t n = peek_byte(lx, 0) < 0 ? 0 : char_len(lx);

		if (n == 0 || peek_byte(lx, 0) == '\n' || peek_byte(lx, 0) == '\r')
			return fail_lex(lx, "unterminated string, or an invalid character in one");
		if (peek_byte(lx, 0) == '\\')
			r = take_escape(lx);
		else
			lx->at += n;
	}
	lx->at++;
	return r;
}

static bool is_triple(const struct lexer *lx, size_t ahead)
{
	return peek_byte(lx, ahead) == '"' && peek_byte(lx, ahead + 1) == '"' &&
	       peek_byte(lx, ahead + 2) == '"';
}

static int take_block(struct lexer *lx)
{
	lx->at += 3;
	while (!is_triple(lx, 0)) {
		size_t n = peek_byte(lx, 0) < 0 ? 0 : char_len(lx);

		if (n == 0)
			return fail_lex(
				lx, "unterminated block string, or an invalid character in one");
		lx->at += peek_byte(lx, 0) == '\\' && is_triple(lx, 1) ? 4 : n;
	}
	lx->at += 3;
	return 0;
}

static int take_token(struct lexer *lx, struct graphql_token *ret)
{
	size_t from = lx->at;
	int c = peek_byte(lx, 0), r = 0;

	ret->at = (uint32_t)from;
	ret->kind = (uint8_t)c;
	if (begins_name(c)) {
		ret->kind = GRAPHQL_NAME;
		while (begins_name(peek_byte(lx, 0)) || is_digit(peek_byte(lx, 0)))
			lx->at++;
	} else if (is_digit(c) || c == '-') {
		ret->kind = GRAPHQL_NUMBER;
		r = take_number(lx);
	} else if (is_triple(lx, 0)) {
		ret->kind = GRAPHQL_BLOCK;
		r = take_block(lx);
	} else if (c == '"') {
		r = take_string(lx);
	} else if (c == '.') {
		if (peek_byte(lx, 1) != '.' || peek_byte(lx, 2) != '.')
			return fail_lex(lx, "invalid character");
		lx->at += 3;
	} else if (c > 0 && strchr("!$():=@[]{}", c)) {
		lx->at++;
	} else {
		return fail_lex(lx, "invalid character");
	}
	ret->n = (uint32_t)(lx->at - from) & 0xffffff;
	return r;
}

/* Each bracket that opens knows the one that closes it. */
static int pair_brackets(struct graphql *doc, const char **ret_why)
{
	uint32_t open[4 * GRAPHQL_MAX_DEPTH];
	size_t depth = 0;

	for (uint32_t i = 0; i < doc->n_tokens; i++) {
		uint8_t kind = graphql_kind(doc, i);

		if (kind == '(' || kind == '[' || kind == '{') {
			*ret_why = "the document is nested too deep";
			if (depth == ARRAY_LEN(open))
				return -EBADMSG;
			open[depth++] = i;
		} else if (kind == ')' || kind == ']' || kind == '}') {
			uint8_t left = depth ? graphql_kind(doc, open[depth - 1]) : 0;

			*ret_why = "the brackets are not paired";
			if (left != (kind == ')' ? '(' : kind - 2))
				return -EBADMSG;
			doc->token[open[--depth]].pair = i;
		}
	}
	*ret_why = "the brackets are not paired";
	return depth ? -EBADMSG : 0;
}

int graphql_lex(struct slice text, struct arena *arena, struct graphql *ret, const char **ret_why)
{
	struct lexer lx = {.text = text};
	uint32_t room = (uint32_t)MIN(text.n + 1, GRAPHQL_MAX_TOKENS + 1u);
	int r = 0;

	*ret_why = "the document is too long";
	ret->token =
		text.n > GRAPHQL_MAX_TEXT ? NULL : arena_calloc(arena, room, sizeof(*ret->token));
	if (!ret->token)
		return -EBADMSG;
	while (r == 0 && (r = skip_ignored(&lx)) == 0 && lx.at < text.n) {
		if (ret->n_tokens + 1 == room)
			return -EBADMSG;
		r = take_token(&lx, &ret->token[ret->n_tokens++]);
	}
	if (r < 0) {
		*ret_why = lx.why;
		return r;
	}
	return pair_brackets(ret, ret_why);
}
