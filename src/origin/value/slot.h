/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot - finds the credential that a request carries, and inserts the sandbox's own.
 *
 * How      slot_judge checks a request before it is sent, with the rules of refuse.c. slot_fill
 *          inserts the value, slot_wipe removes it again.
 * Trust    The request of the guest.
 */
#pragma once

#include "src/origin/state/state.h"

/* slot.c */
/* Checks the request: ORIGIN_DONE and x->slot, or the outcome of a denial, and where the credential
 * is. Removes placeholders, in place. */
enum origin_outcome slot_judge(
	struct origin *o, struct exchange *x, char ret_where[ORIGIN_MAX_WHERE]) MUST_CHECK;
/* ORIGIN_DENIED_FOREIGN, or ORIGIN_DONE and the trailers without placeholders. */
enum origin_outcome slot_judge_trailers(
	const struct origin *o, struct http_headers *trailers) MUST_CHECK;
/* Adds the value to the request: the header of x->slot, its text in v->text. -EINVAL: the value is
 * not valid there. */
int slot_fill(struct origin *o, struct exchange *x, struct value *v) MUST_CHECK;
/* The head was sent: removes the value again. */
void slot_wipe(struct exchange *x);

/* refuse.c */
/* Sets x->captures to the `capture` rules for its response. */
void refuse_find_captures(const struct origin *o, struct exchange *x);
/* Adds a command to the text about a foreign credential. */
void refuse_help(const struct origin *o, enum origin_outcome outcome, char where[ORIGIN_MAX_WHERE]);
/* Whether the service denies a request with such a header: a server may merge its trailers. */
bool refuse_trailers(const struct origin *o, const struct http_headers *trailers);
/* Returns -EPERM if a rule of the service denies the request, with the rule and a command. */
int refuse_judge(const struct origin *o, const struct exchange *x,
	char ret_where[ORIGIN_MAX_WHERE]) MUST_CHECK;
