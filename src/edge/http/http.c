/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that has a connection: proxy.c's or h2.c's. */
#include "h2_internal.h"

/* Estimated memory of nghttp2 for one connection, and for a queued frame. */
#define H2_STATE 65536
#define H2_FRAME 256

void http_begin(struct edge *e, struct conn *c)
{
	uint32_t idx = c->idx, gen = c->gen;

	conn_drop_fd(e, c);
	conn_set_timer(e, c, 0);
	c->proto = EDGE_PROTO_HTTP;
	c->state = CONN_HTTP;
	proxy_begin(e, c);
	c = conn_find(e, idx, gen);
	if (c && c->state == CONN_HTTP && (bufq_len(&c->in) || c->in_end))
		proxy_on_bytes(e, c);
}

void http_on_bytes(struct edge *e, struct conn *c)
{
	if (c->state == CONN_HTTP)
		proxy_on_bytes(e, c);
	else if (c->state == CONN_H2)
		h2_on_bytes(e, c);
}

void http_on_room(struct edge *e, struct conn *c)
{
	if (c->state == CONN_HTTP)
		proxy_on_room(e, c);
	else if (c->state == CONN_H2)
		h2_on_room(e, c);
}

void http_drop(struct edge *e, struct conn *c)
{
	if (c->proxy)
		proxy_free(e, c);
	if (c->h2)
		h2_free(e, c);
}

static size_t block_of(const struct arena *a)
{
	return a->block ? a->size : 0;
}

static size_t proxy_worth(const struct proxy *p)
{
	return block_of(&p->arena) + (p->reader.buf ? CANON_MAX_HEAD : 0) + p->to_fd.n +
	       p->to_fd.at + p->to_guest.n + p->to_guest.at;
}

size_t http_worth(const struct conn *c)
{
	size_t n = c->proxy ? proxy_worth(c->proxy) : 0;

	if (c->h2)
		n += H2_STATE + H2_FRAME * nghttp2_session_get_outbound_queue_size(c->h2->session);
	if (c->link)
		n += c->link->in_size;
	if (c->stream)
		n += block_of(&c->stream->tail_arena) + c->stream->n_head_bytes;
	return n;
}
