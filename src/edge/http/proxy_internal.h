/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_internal - declarations shared by the parts of the HTTP engine.
 *
 * The engine handles a request and its response the same way for HTTP/1.1 (proxy_h1.c) and for a
 * stream of HTTP/2 (h2_stream.c). A struct proxy_tongue reads and writes them. A connection is in
 * one state, and each state has one function that continues as far as data, room and sockets allow
 * (proxy_pump). After PROXY_GONE the caller must not use the connection.
 */
#pragma once

#include "proxy_state.h"

/* proxy_h1.c */
extern const struct proxy_tongue proxy_h1;
/* Sends data to the guest; what does not fit into c->out waits in to_guest. */
void proxy_say(struct edge *e, struct conn *c, struct slice bytes);
/* Returns true if all earlier data fit into c->out. */
bool proxy_flush_guest(struct edge *e, struct conn *c);

/* proxy.c */
struct proxy *proxy_new(struct conn *c, const struct proxy_tongue *tongue);
void proxy_pump(struct edge *e, struct conn *c);
/* The answer is complete: sends the rest of c->out, then ends the connection. */
enum proxy_step proxy_finish(struct edge *e, struct conn *c);
/* Ends the connection so that it cannot be mistaken for the end of an answer. */
enum proxy_step proxy_hang_up(struct edge *e, struct conn *c);
/* Prepares for the next request; this one was read to its END. */
enum proxy_step proxy_next(struct edge *e, struct conn *c);
void proxy_rest_add(struct proxy_rest *rest, struct slice bytes);
void proxy_rest_eat(struct proxy_rest *rest, size_t n);
static inline struct slice proxy_rest_slice(const struct proxy_rest *rest)
{
	return slice_of(rest->buf ? rest->buf + rest->at : NULL, rest->n);
}

/* proxy_request.c */
enum proxy_step proxy_read_head(struct edge *e, struct conn *c);
/* Handles a parsed request, which must stay valid until its END. */
enum proxy_step proxy_on_head(struct edge *e, struct conn *c, struct http_req *req);
/* Asks the keeper about the request. wants: names of headers to send and their id, or "" and 0. */
enum proxy_step proxy_ask(
	struct edge *e, struct conn *c, const struct http_req *req, const char *wants, uint32_t id);
enum proxy_step proxy_discard(struct edge *e, struct conn *c);
/* c->fd is set: sends the head to egress. */
enum proxy_step proxy_start_exchange(struct edge *e, struct conn *c);
enum proxy_step proxy_send_body(struct edge *e, struct conn *c);
/* Sends as much as the socket accepts; 0 if none, and then x.writable is false or x.deaf true. */
size_t proxy_send_some(struct edge *e, struct conn *c, struct slice head, struct slice bytes);

/* proxy_answer.c */
enum proxy_step proxy_read_answer(struct edge *e, struct conn *c);
/* No more data from egress: 0 at end-of-file, or a negative errno. */
enum proxy_step proxy_on_fd_end(struct edge *e, struct conn *c, ssize_t r);

/* proxy_refuse.c */
/* The request could not be parsed, or its names do not match. */
enum proxy_step proxy_refuse(struct edge *e, struct conn *c, const struct http_fault *fault);
enum proxy_step proxy_deny(struct edge *e, struct conn *c, const struct edge_verdict *verdict);
/* Allowed, but failed: 403 if egress denied it by its own copy of the policy. */
enum proxy_step proxy_fail(struct edge *e, struct conn *c, uint16_t status, struct slice reason);
