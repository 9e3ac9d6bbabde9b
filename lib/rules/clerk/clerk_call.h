/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clerk_call - the records of EFFECTS of an sbx-clerk: the root fields of a request to GraphQL.
 *
 * How      A record names the row of the API pack that has the field, and the object. The keeper
 *          finds the verb and the risk of that row in its own copy of the pack.
 * Trust    As clerk_chan.h: the word of a process that reads what the guest wrote.
 * Owns     Nothing: slices point into the message.
 * Limits   CLERK_MAX_FIELD, CLERK_MAX_OBJECT.
 * See      clerk_chan.h, clerk_chan_test.c, clerk_chan_fuzz.c
 */
#pragma once

#include "clerk_chan.h"

#define CLERK_MAX_FIELD 255
#define CLERK_MAX_OBJECT 512

enum clerk_call_type { CLERK_QUERY, CLERK_MUTATION, CLERK_SUBSCRIPTION, CLERK_UNKNOWN };

struct clerk_call {
	enum clerk_call_type type; /* CLERK_UNKNOWN: without the rest */
	struct slice field, object;
};

/* "query", "mutation" ... as packs name them. */
const char *clerk_call_name(enum clerk_call_type type);
/* As those of struct clerk_effect. */
void clerk_put_call(struct wr *wr, const struct clerk_call *call);
int clerk_get_calls(const struct ipc_msg *msg, struct slice *ret, size_t *ret_n) MUST_CHECK;
int clerk_next_call(struct slice *records, struct clerk_call *ret) MUST_CHECK;
