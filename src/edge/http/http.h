/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - the engines for HTTP/1.1 and for HTTP/2.
 *
 * How      proxy*.c handle one request at a time: each is a query to the keeper, then an exchange
 *          with sbx-egress or sbx-origin. h2.c has a session of HTTP/2 inside intercepted TLS; each
 *          stream (h2_stream.c) is a connection of the table with the same engine.
 * Trust    Untrusted input of the guest; frames of egress.
 * Owns     c->proxy, c->h2, c->stream.
 * Limits   H2_*, PROXY_*.
 * Never    Sends data of a request to egress before the keeper has allowed that request.
 * See      proto/PROTOCOL.canon
 */
#pragma once

#include "lib/wire/http/http1.h"
#include "src/edge/conn/conn.h"

#define H2_MAX_STREAMS 100
/* Unsent data of one request's body. The connection's window is the sum of all streams, so that an
 * unread stream does not stop the others. */
#define H2_WINDOW WIRE_NET_WINDOW
/* Trailers of an answer, while its last bytes wait: text and list. */
#define H2_TAIL_SIZE (HTTP_MAX_TRAILER_BYTES + HTTP_MAX_TRAILERS * 64 + 64)

/* http.c */
/* The first bytes are HTTP: starts the HTTP engine; c->target is unchanged. */
void http_begin(struct edge *e, struct conn *c);
/* Calls the engine that has the connection: proxy.c's or h2.c's. */
void http_on_bytes(struct edge *e, struct conn *c);
void http_on_room(struct edge *e, struct conn *c);
/* Frees c->proxy and c->h2. */
void http_drop(struct edge *e, struct conn *c);
/* Estimates what closing the connection frees here. */
size_t http_worth(const struct conn *c);

/* proxy.c: the HTTP engine. c->target is set if the target is fixed (redirected, or inside a
 * CONNECT). proxy_on_bytes follows proxy_begin if there is data. proxy_free sets c->proxy to
 * NULL. */
void proxy_begin(struct edge *e, struct conn *c);
void proxy_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void proxy_on_room(struct edge *e, struct conn *c);
/* Takes fd; -1: none. */
void proxy_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd);
void proxy_on_fd(struct edge *e, struct conn *c, uint32_t events);
void proxy_on_timer(struct edge *e, struct conn *c);
void proxy_free(struct edge *e, struct conn *c);

/*
 * h2.c: the HTTP/2 engine, only inside intercepted TLS (c->open, c->target given, c->sni).
 * h2_begin follows a handshake whose ALPN is h2. Decrypted data is in c->in; h2_on_bytes follows if
 * there is any. The engine consumes with conn_eat, writes with conn_say into c->out as far as
 * conn_room allows, and closes with conn_end or conn_reset. h2_free sets c->h2 to NULL.
 */
void h2_begin(struct edge *e, struct conn *c);
void h2_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void h2_on_room(struct edge *e, struct conn *c);
void h2_on_timer(struct edge *e, struct conn *c);
void h2_free(struct edge *e, struct conn *c);

/* h2_stream.c, for struct conn_ops: the operations that the wire has for other connections. For the
 * HTTP engine a CONN_STREAM is like any other connection; its data is inside its connection. */
void h2_stream_consumed(struct edge *e, struct conn *c, size_t n);
void h2_stream_resume(struct edge *e, struct conn *c); /* c->out or c->out_end has changed */
void h2_stream_reset(struct edge *e, struct conn *c);
void h2_stream_over(struct edge *e, struct conn *c); /* makes c->stream NULL */
