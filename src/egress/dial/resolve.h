/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - the queries of dial.c to c-ares.
 *
 * How      resolve_ask sends two queries; each answer is passed to dial_on_answer.
 * Trust    Answers of resolvers.
 */
#pragma once

#include <netdb.h>
#include "dial.h"

enum dial_answer { DIAL_FOUND, DIAL_NONE, DIAL_BROKEN };

/* resolve.c */
/* Queries both families; dial_on_answer gets each answer, possibly before this returns. */
void resolve_ask(struct egress *e, const struct exchange *x, const char *name);

/* dial.c */
/* family: 0 A, 1 AAAA; host is NULL unless DIAL_FOUND. */
void dial_on_answer(struct egress *e, struct exchange *x, unsigned family, enum dial_answer answer,
	const struct hostent *host);
