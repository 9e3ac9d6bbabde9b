/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies - the same rules compiled for each sandbox that is asked about.
 *
 * How      policies_find compiles the rules for a name when it is first asked about. A search
 *          begins with the last name: records of one sandbox often follow each other.
 * Trust    Rules and names of the same user. No I/O.
 * Owns     The compiled policies; the rules are the caller's and must live longer.
 * See      shrink.h, policies_test.c
 */
#pragma once

#include "contain.h"

struct policies_row {
	char *sandbox;
	struct policy *policy;
};

struct policies {
	const struct rules *rules;
	const struct contain_limit *limit; /* NULL: none */
	struct policies_row *row;
	size_t n, room, last;
};

const struct policy *policies_find(struct policies *all, struct slice sandbox);
void policies_done(struct policies *all);
