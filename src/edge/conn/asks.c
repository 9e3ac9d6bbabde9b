/* SPDX-License-Identifier: Apache-2.0 */
/* Asks to the keeper: NET_ASKS at the same time, the others wait in order. */
#include "conn.h"

#include <errno.h>
#include "lib/base/mem.h"

static struct asked *find_free(struct net *net)
{
	for (size_t i = 0; i < NET_ASKS && net->n_asked < NET_ASKS; i++) {
		if (!net->asked[i].used)
			return &net->asked[i];
	}
	return NULL;
}

/* Returns true if the ask was sent. */
static bool send_ask(struct edge *e, const struct conn *c, const struct edge_ask *ask)
{
	struct net *net = e->net;
	struct asked *a = e->control.wants_room || e->control.done ? NULL : find_free(net);
	/* The id contains the slot, and an old id is not reused soon. */
	uint32_t id = a ? net->next_ask * NET_ASKS + (uint32_t)(a - net->asked) : 0;

	if (!a || e->keeper->send_ask(e, id, ask) < 0)
		return false;
	*a = (struct asked){.used = true,
		.fault = ask->fault[0] != '\0',
		.tls = ask->tls,
		.kind = ask->kind,
		.id = id,
		.idx = c->idx};
	net->next_ask++;
	net->n_asked++;
	return true;
}

static void unlink_wait(struct net *net, struct ask_wait *w)
{
	*(w->prev ? &w->prev->next : &net->first_wait) = w->next;
	*(w->next ? &w->next->prev : &net->last_wait) = w->prev;
	if (w->conn->wait == w)
		w->conn->wait = NULL;
	free(w->ask);
	free(w);
}

void asks_put(struct edge *e, struct conn *c, const struct edge_ask *ask)
{
	struct net *net = e->net;
	struct ask_wait *w;

	if (!net->first_wait && send_ask(e, c, ask))
		return;
	w = xmalloc(sizeof(*w));
	*w = (struct ask_wait){.prev = net->last_wait, .conn = c, .ask = ask_copy_new(ask)};
	*(w->prev ? &w->prev->next : &net->first_wait) = w;
	net->last_wait = w;
	/* A fault is reported even after its connection is closed. */
	if (!ask->fault[0])
		c->wait = w;
}

/* It stays until its verdict. */
static void drop_sent(struct edge *e, const struct conn *c)
{
	for (size_t i = 0; i < NET_ASKS; i++) {
		struct asked *a = &e->net->asked[i];

		if (!a->used || a->fault || a->gone || a->idx != c->idx)
			continue;
		a->gone = true;
		e->keeper->send_gone(e, a->id);
	}
}

void asks_forget(struct edge *e, struct conn *c)
{
	if (c->asking && !c->wait)
		drop_sent(e, c);
	if (!c->wait)
		return;
	unlink_wait(e->net, c->wait);
	c->asking = false;
}

void asks_flush(struct edge *e)
{
	static struct edge_ask ask;
	struct net *net = e->net;

	while (net && net->first_wait) {
		ask_copy_get(net->first_wait->ask, &ask);
		if (!send_ask(e, net->first_wait->conn, &ask))
			return;
		unlink_wait(net, net->first_wait);
	}
}

int asks_take(struct edge *e, uint32_t id, struct asked *ret)
{
	struct asked *a = &e->net->asked[id % NET_ASKS];

	if (!a->used || a->id != id)
		return -EBADMSG;
	*ret = *a;
	a->used = false;
	e->net->n_asked--;
	return 0;
}
