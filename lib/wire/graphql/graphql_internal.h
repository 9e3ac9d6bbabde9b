/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphql_internal - what the parts of graphql.h share: tokens.
 */
#pragma once

#include "graphql.h"

/* Punctuation has its own character as its kind; "..." is '.'. */
enum graphql_kind {
	GRAPHQL_END = 0,
	GRAPHQL_NAME = 'n',
	GRAPHQL_NUMBER = '0',
	GRAPHQL_STRING = '"',
	GRAPHQL_BLOCK = 'b',
};

struct graphql_token {
	uint32_t at;
	uint32_t n : 24, kind : 8;
	uint32_t pair; /* of an opening bracket: the token that closes it */
};

/* All tokens of the text, and one GRAPHQL_END. */
int graphql_lex(struct slice text, struct arena *arena, struct graphql *ret,
	const char **ret_why) MUST_CHECK;

static inline struct slice graphql_word(const struct graphql *doc, uint32_t i)
{
	return slice_of(doc->text.p + doc->token[i].at, doc->token[i].n);
}

static inline uint8_t graphql_kind(const struct graphql *doc, uint32_t i)
{
	return doc->token[i].kind;
}

/* The first token behind a value. */
uint32_t graphql_skip_value(const struct graphql *doc, uint32_t i);
