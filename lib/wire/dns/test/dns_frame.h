/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_frame - messages of a DNS stream (TCP): u16 length in network order, then the message.
 *
 * How      dns_frame_feed eats bytes and gives a message when one is whole: in place when all of it
 *          is in the piece, else out of the reader's buffer. dns_frame_head makes the two bytes
 *          that precede an answer.
 * Trust    For tests: in a sandbox sbx-guest removes the length (src/guest/net/net_dns.c).
 * Owns     Nothing on the heap.
 * Limits   DNS_MAX_QUERY; a longer or an empty message makes the reader bad for good.
 * See      tests/rigs/programs/dns_server.c, dns_fuzz.c
 */
#pragma once

#include "lib/wire/dns/dns_query.h"

struct dns_frame {
	uint8_t head[2];
	uint8_t n_head;
	bool bad;
	uint16_t n_buf;
	uint8_t buf[DNS_MAX_QUERY];
};

void dns_frame_init(struct dns_frame *f);
/* Takes bytes off the front of *in: 1 and a message that is valid until the next call, 0 when
 * *in is empty and there is none yet, -EBADMSG: close the stream. */
int dns_frame_feed(struct dns_frame *f, struct slice *in, struct slice *ret_msg) MUST_CHECK;
void dns_frame_head(uint8_t head[2], uint16_t n);
