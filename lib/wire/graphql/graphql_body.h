/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphql_body - GraphQL over HTTP: the documents of one request.
 *
 * How      graphql_read_body reads the JSON of a POST, also a batch. graphql_read_query reads the
 *          fields of a GET. Each call has a document, the name of its operation and its variables.
 * Trust    Parses untrusted text. No I/O.
 * Owns     Nothing: decoded text is in the caller's arena.
 * Limits   GRAPHQL_MAX_BODY, GRAPHQL_MAX_CALLS, and what fits into the arena.
 * Never    Accepts a member that it does not know, or one that is there twice or in another case:
 *          servers have further ways to name a stored document.
 * See      graphql.h, graphql_body_test.c
 */
#pragma once

#include "graphql.h"

#define GRAPHQL_MAX_BODY (1u << 20)
#define GRAPHQL_MAX_CALLS 16

struct graphql_call {
	struct slice text;
	struct slice name; /* NULL pointer: none */
	struct slice vars; /* a JSON object, or empty */
};

/* -EBADMSG, and *ret_why is a sentence for it. */
int graphql_read_body(struct slice body, struct arena *arena,
	struct graphql_call calls[GRAPHQL_MAX_CALLS], size_t *ret_n,
	const char **ret_why) MUST_CHECK;
int graphql_read_query(struct slice query, struct arena *arena, struct graphql_call *ret,
	const char **ret_why) MUST_CHECK;
