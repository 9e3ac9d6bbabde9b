/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out - bytes that wait for a socket, and the messages to edge in them.
 *
 * How      A queue that has memory only while there are bytes in it. out_wr gives room to write
 *          frames or text into, out_put_wr takes what was written, out_flush sends. out_put_refusal
 *          and out_put_reset are our own messages to edge; out_drop_ours removes headers that only
 *          sbx may send from a server's response. An exchange begins with out_read_request and
 *          out_is_decided, and ends with out_end, on the socket to edge.
 * Trust    Contains data of peers. Bytes are wiped only if is_secret is set for a credential, until
 *          the queue is empty. Runs in egress and origin.
 * Owns     Its bytes, freed by out_done or when all were sent.
 * Limits   OUT_MAX bytes a queue.
 * See      proto/PROTOCOL.canon, src/egress/test/egress_http_test.c, src/origin/test/origin_test.c
 */
#pragma once

#include "lib/base/hash/ticket.h"
#include "lib/wire/http/canon/canon_frame.h"

#define OUT_READ 32768 /* what one read of a peer brings */
#define OUT_STREAM 1   /* the one stream of each socket to edge */
/* A head that was nearly read, what one more read can become (a frame around each byte of a chunk),
 * and another head. */
#define OUT_MAX (2 * CANON_MAX_HEAD + 2 * OUT_READ)

struct out {
	uint8_t *p;
	size_t at, n, size;
	bool is_secret;
};

/* Room for `room` bytes after the queued ones, or less at OUT_MAX; out_put_wr takes what was
 * written when all of it fitted. */
struct wr out_wr(struct out *o, size_t room);
void out_put_wr(struct out *o, const struct wr *wr);
int out_put(struct out *o, struct slice bytes) MUST_CHECK;
static inline size_t out_len(const struct out *o)
{
	return o->n - o->at;
}
static inline size_t out_room(const struct out *o)
{
	return OUT_MAX - out_len(o);
}
static inline struct slice out_peek(const struct out *o)
{
	return slice_of(o->p + o->at, out_len(o));
}
/* The first n bytes were sent. */
void out_consume(struct out *o, size_t n);
/* 0 if all was sent, -EAGAIN, or an error of the socket; *n_sent grows. */
int out_flush(struct out *o, int fd, uint64_t *n_sent) MUST_CHECK;
void out_done(struct out *o);
/* The first frame of edge, and no byte after it: in a tunnel that is the server's. 1 when it is
 * complete, with the kind CANON_N_KINDS if it is malformed; 0 when more is to come; -EPIPE at the
 * end of the socket. Its payload holds until the next call. */
int out_read_request(int fd, struct canon_reader *rd, struct canon_frame *ret) MUST_CHECK;
/* Whether the request is the one that the keeper's ticket is for. names: of the headers that rules
 * for its host name (canon_named.h). */
bool out_is_decided(const struct ticket *ticket, const struct http_req *req, struct slice names);
/* Sends the rest and ends our direction. Reads what edge still sends and drops it: a close with
 * unread bytes would cut off what edge has yet to read. 0 when all is over, -EAGAIN, or 1 when
 * there is more to drop. *is_shut begins as false: shutdown() is called once, because each call is
 * an event of this socket. */
int out_end(struct out *o, int fd, bool *is_shut) MUST_CHECK;

/* A refusal is a head with one header of sbx, and the end. Nothing when there is no room. */
void out_put_refusal(struct out *o, uint16_t status, const char *text);
void out_put_reset(struct out *o);
/* Removes `sbx-*`, so that edge can tell our refusals from a server's answers. */
void out_drop_ours(struct http_headers *headers);
/* What goes to people and into headers is printable and has no blank at its ends. */
void out_clean_text(char *text);
