/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - prints the response of a peer as one line of plain text, with a verdict.
 *
 * How      answer_dns reads a DNS message, answer_talk the first bytes of a connection: an HTTP
 *          head, a TLS record, or anything. The verdict is PROBE_POSSIBLE or PROBE_REFUSED.
 * Trust    Untrusted data of the peer: the sandbox's own proxy and resolver, or a guest process
 *          that imitates them. In doubt the verdict is PROBE_POSSIBLE, which fails a probe: a DNS
 *          message that claims answers, an invalid status, data of no protocol.
 * Limits   Offsets are checked against the length before a byte is read. Printed text is limited.
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
