/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - one request to GraphQL, as lib/rules/clerk/session.h handles it.
 *
 * How      The body is kept to its end. Then the pack of the API says what each root field of its
 *          documents does: one record each, and a line of the preview. A body that cannot be
 *          understood is one unknown record with the reason. A refusal is an answer of GraphQL.
 * Trust    Bytes of the guest. Holds no secret.
 * Owns     The pack and the body, for the time of the session.
 * Limits   struct clerk_open: a longer body is not sent, whatever the rules say.
 * Never    Sends anything itself.
 * See      README, lib/rules/pack/pack_graphql.h, calls_fuzz.c
 */
#pragma once

#include "lib/rules/clerk/session.h"
#include "lib/rules/pack/pack_graphql.h"

extern const struct session_program calls_program;

/* The way from a request to records, for the self-test and tests. */
struct calls {
	struct pack pack;
	struct slice body; /* on the heap */
	size_t room, max;
	bool is_long;
};

/* A sentence for each field, for a person; CLERK_MAX_PREVIEW + 1 bytes. */
void calls_preview(const struct pack_effects *effects, char *ret);
/* The record of an effect; 0: it has none. buf has CALLS_RECORD bytes. */
#define CALLS_RECORD 1024
size_t calls_record(const struct pack_effect *e, uint8_t *buf);
/* {"data":null,"errors":[...]}; the text may have several lines. */
void calls_refusal(const char *text, const char *why, session_out *out, void *arg);
