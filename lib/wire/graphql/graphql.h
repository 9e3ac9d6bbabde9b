/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphql - executable GraphQL documents: operations, their root fields and arguments.
 *
 * How      graphql_parse reads a whole document (October 2021 edition: operations, fragments,
 *          directives, block strings). graphql_list_roots expands the fragments of an operation
 *          and returns its root fields, also those that @skip may leave out. graphql_find_value
 *          resolves a part of an argument, also through variables and their defaults.
 * Trust    Parses untrusted text. No I/O. What servers are known to read in different ways is an
 *          error: a duplicate name, a byte order mark, a line separator of Unicode.
 * Owns     Nothing: tokens are in the caller's arena, slices point into the text.
 * Limits   GRAPHQL_MAX_*; beyond one of them the document is an error.
 * Never    Accepts a document without understanding all of it; recurses deeper than its limit.
 * See      graphql_body.h, graphql_test.c, graphql_oracle.py, graphql_fuzz.c
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/slice.h"

#define GRAPHQL_MAX_TEXT (128u << 10)
#define GRAPHQL_MAX_TOKENS 32768
#define GRAPHQL_MAX_DEPTH 48 /* selection sets, lists and objects in each other */
#define GRAPHQL_MAX_OPS 32
#define GRAPHQL_MAX_FRAGMENTS 128
#define GRAPHQL_MAX_ROOTS 64
#define GRAPHQL_MAX_NAMES 256 /* of one list of arguments, or of variables */
#define GRAPHQL_MAX_PATH 8    /* names of a path to a value */
/* Of the arena of a document of this length. */
#define GRAPHQL_ARENA_SIZE(n) (((n) + 1) * 16 + 64)

enum graphql_type { GRAPHQL_QUERY, GRAPHQL_MUTATION, GRAPHQL_SUBSCRIPTION };

struct graphql_op {
	enum graphql_type type;
	struct slice name;  /* empty: anonymous */
	uint32_t vars, set; /* tokens: "(" or 0, "{" */
	bool has_directives;
};

struct graphql_fragment {
	struct slice name;
	uint32_t set;
	bool has_directives;
};

struct graphql {
	struct slice text;
	struct graphql_token *token;
	uint32_t n_tokens;
	struct graphql_op op[GRAPHQL_MAX_OPS];
	size_t n_ops;
	struct graphql_fragment fragment[GRAPHQL_MAX_FRAGMENTS];
	size_t n_fragments;
};

/* A field of the outer selection set of an operation. */
struct graphql_root {
	struct slice name, alias; /* alias: empty if it has none */
	uint32_t args;		  /* token: "(" or 0 */
	const struct graphql_op *op;
};

/* -EBADMSG, and *ret_why is a sentence for it. */
int graphql_parse(struct slice text, struct arena *arena, struct graphql *ret,
	const char **ret_why) MUST_CHECK;
/* The operation that a server executes. `name`: NULL pointer if the request has none. -ENOENT if
 * there is not exactly one. */
int graphql_select(
	const struct graphql *doc, struct slice name, const struct graphql_op **ret) MUST_CHECK;
/* Appends; -EBADMSG for a fragment that is missing or contains itself, a directive that may change
 * what is executed, or too many fields. */
int graphql_list_roots(const struct graphql *doc, const struct graphql_op *op,
	struct graphql_root roots[GRAPHQL_MAX_ROOTS], size_t *n, const char **ret_why) MUST_CHECK;

/* ABSENT: the value is null, or there is none. UNKNOWN: a list, an object, or an error. */
enum graphql_fact { GRAPHQL_ABSENT, GRAPHQL_KNOWN, GRAPHQL_UNKNOWN };

/* `path` is /ARGUMENT or /ARGUMENT/FIELD...; `vars` the JSON object of the variables, or empty. A
 * string is decoded, into `buf` if that is necessary; other values are as they were written. */
enum graphql_fact graphql_find_value(const struct graphql *doc, const struct graphql_root *root,
	struct slice path, struct slice vars, uint8_t *buf, size_t size, struct slice *ret);
