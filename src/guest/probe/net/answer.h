/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - what a peer answered, as one line of plain text and a verdict.
 *
 * How      answer_dns reads a DNS message, answer_talk the first bytes of a connection: an HTTP
 *          head, a TLS record, or anything. The verdict is PROBE_POSSIBLE or PROBE_REFUSED.
 * Trust    Bytes of whoever answers: the sandbox's own proxy and resolver, or somebody in the guest
 *          who plays them. In doubt it was possible, which is what a probe calls a hole: a DNS
 *          message that claims answers, a status that is none, bytes of no protocol.
 * Limits   Offsets are checked against the length before a byte is read. What is printed of a text
 *          is cut.
 * Never    Follows a pointer of a DNS name. Prints a byte that is not plain text.
 * See      answer_test.c, answer_fuzz.c, dns.c, talk.c
 */
#pragma once

#include <stdio.h>
#include "lib/base/slice.h"

int answer_dns(FILE *out, struct slice bytes);
/* `bytes` are not empty. */
int answer_talk(FILE *out, struct slice bytes);
/* Bytes as plain text in one line, at most `most` of them. */
void answer_print(FILE *out, struct slice bytes, size_t most);
