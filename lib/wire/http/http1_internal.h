/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_internal - what the parts of http1 share: the gate, the framing, and llhttp as twin.
 */
#pragma once

#include "http1.h"

/* Refuses with the status, or with 502 when the message is a response. */
int http1_fail(struct http1 *h, uint16_t status, const char *why);

/* http1_head.c: lines out of *in into h->lines. 1 when the empty line was read, 0 for more. */
int http1_collect(struct http1 *h, struct slice *in, size_t max);
/* The collected head into h->req or h->resp: start line, headers, framing. */
int http1_parse_head(struct http1 *h);
int http1_parse_trailers(struct http1 *h);

/* http1_framing.c: body kind, Connection, Upgrade, Expect and TE of a parsed head. */
int http1_frame_req(struct http1 *h);
int http1_frame_resp(struct http1 *h);

/* http1_chunk.c: reads chunk framing bytes. 1 if the state is to be checked again, 0 for more. */
int http1_chunk_line(struct http1 *h, struct slice *in);
int http1_chunk_end(struct http1 *h, struct slice *in);

/* http1_twin.c */
int http1_twin_head(struct http1 *h);
/* Bytes of framing: llhttp must not find data in them. */
int http1_twin_framing(struct http1 *h, struct slice bytes);
/* Bytes of data: llhttp must find exactly them. */
int http1_twin_data(struct http1 *h, struct slice bytes);
int http1_twin_trailers(struct http1 *h);
/* The message is over: llhttp must think so too. */
int http1_twin_end(struct http1 *h, bool at_eof);
/* The front of *in, at most n bytes; *in moves after it. */
struct slice http1_take(struct slice *in, uint64_t n);
