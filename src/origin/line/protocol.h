/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol - what line_h1.c and line_h2.c use of a line.
 *
 * How      line.c keeps or drops a line, tls.c moves its bytes.
 * Trust    Internal.
 */
#pragma once

#include "line.h"

/* line.c */
/* Closes it. It must have no exchange. */
void line_drop(struct origin *o, struct line *l);
/* Requests another turn without an event: there is more to do. */
void line_again(struct origin *o, struct line *l);
/* As line_again after a while, for a line with exchanges; an earlier turn stays. */
void line_wake(struct origin *o, struct line *l, uint64_t ms);
/* A held line is not dropped when its last exchange leaves. line_release returns the remaining
 * number of holds; at 0 line_settle does the postponed work: the line is kept for later, or
 * dropped. */
static inline void line_hold(struct line *l)
{
	l->n_exchanges++;
}
static inline unsigned line_release(struct origin *o, struct line *l)
{
	return --l->n_exchanges;
}
void line_settle(struct origin *o, struct line *l);

/* tls.c */
/* Creates l->ssl for l->fd. */
int tls_begin(struct origin *o, struct line *l) MUST_CHECK;
/* Returns 0 if verified (l->cert, l->ops), -EAGAIN, -EPROTO without TLS, -EKEYREJECTED for a wrong
 * certificate; *ret_why has the reason. */
int tls_handshake(struct origin *o, struct line *l, const char **ret_why) MUST_CHECK;
void tls_end(
	struct line *l); /* not _free: OpenSSL 3.5 has one of that name, and is linked statically */
/* Reads plain data: its length, 0 at a proper end, -EAGAIN, -EPIPE if it was cut. */
ssize_t line_recv(struct line *l, void *p, size_t n) MUST_CHECK;
/* Whether there may be data that no further event reports: buffered by OpenSSL, or the end. */
bool line_may_have_more(const struct line *l);
/* Returns the bytes sent, -EAGAIN, -EPIPE. After -EAGAIN pass the same data again. */
ssize_t line_send(struct line *l, struct slice bytes) MUST_CHECK;

/* line_h1.c, line_h2.c */
extern const struct line_ops line_h1, line_h2;
