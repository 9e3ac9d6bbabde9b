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
/* Closes it. No exchange may be on it any more. */
void line_drop(struct origin *o, struct line *l);
/* Asks for another turn: nothing new will come, and there was more to do. */
void line_again(struct origin *o, struct line *l);
/* As line_again after a while, for a line that has exchanges; a turn that comes sooner stays. */
void line_wake(struct origin *o, struct line *l, uint64_t ms);
/* While it is held a line is not dropped when its last exchange leaves. line_release gives the
 * number that is left; when it is 0 line_settle does what was put off: the line is kept for the
 * next ones, or dropped. */
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
/* Makes l->ssl over l->fd. */
int tls_begin(struct origin *o, struct line *l) MUST_CHECK;
/* 0 when it is verified (l->cert, l->ops), -EAGAIN, -EPROTO: no TLS, -EKEYREJECTED: not its
 * certificate; *ret_why says why. */
int tls_handshake(struct origin *o, struct line *l, const char **ret_why) MUST_CHECK;
void tls_end(
	struct line *l); /* not _free: OpenSSL 3.5 has one of that name, and is linked statically */
/* Plain bytes: as many as there are, 0 at the proper end, -EAGAIN, -EPIPE when it was cut. */
ssize_t line_recv(struct line *l, void *p, size_t n) MUST_CHECK;
/* How many were taken, -EAGAIN, -EPIPE. After -EAGAIN the same bytes must come again. */
ssize_t line_send(struct line *l, struct slice bytes) MUST_CHECK;

/* line_h1.c, line_h2.c */
extern const struct line_ops line_h1, line_h2;
