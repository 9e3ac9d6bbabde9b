/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nl - netlink messages for the kernel, many in one buffer, and the responses.
 *
 * How      nl_begin, attributes, nl_end for each message; nl_talk sends them all and reads each
 *          requested response. An overflow is recorded, and nl_talk then sends nothing.
 * Trust    The kernel's responses. All values are constants or our own.
 * Owns     Nothing between calls; the caller owns the buffer.
 * Limits   NL_MAX bytes of messages, NL_MAX_DEPTH nested attributes, NL_ANSWER_MS for an answer.
 * See      net_link.h, net_rules.h
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

#define NL_MAX 8192
#define NL_MAX_DEPTH 8
#define NL_ANSWER_MS 5000

struct nl {
	size_t n, msg; /* bytes, and the start of the current message */
	size_t nest[NL_MAX_DEPTH];
	unsigned depth, n_answers;
	uint32_t seq;
	bool overflow;
	uint8_t buf[NL_MAX] __attribute__((aligned(8)));
};

/* flags are NLM_F_*; NLM_F_REQUEST is added. head is the fixed part of that kind of message. */
void nl_begin(struct nl *nl, uint16_t type, uint16_t flags, const void *head, size_t n);
void nl_end(struct nl *nl);
void nl_put(struct nl *nl, uint16_t attr, const void *p, size_t n);
void nl_str(struct nl *nl, uint16_t attr, const char *s);
void nl_u32(struct nl *nl, uint16_t attr, uint32_t v);
/* nf_tables uses network byte order. */
void nl_be32(struct nl *nl, uint16_t attr, uint32_t v);
void nl_nest(struct nl *nl, uint16_t attr);
void nl_unnest(struct nl *nl);
/* Returns 0, or the first error. With `exists_ok`, -EEXIST is not an error. */
int nl_talk(struct nl *nl, int protocol, bool exists_ok, struct err *err) MUST_CHECK;
/* The same on a socket that blocks and stays the caller's. */
int nl_talk_on(int fd, struct nl *nl, bool exists_ok, struct err *err) MUST_CHECK;
