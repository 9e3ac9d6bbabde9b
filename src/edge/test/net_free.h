/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_free - frees the network of an edge, for tests that create several.
 *
 * How      net_free frees the connections and all memory; the loop must still exist. sbx-edge needs
 *          no such function: its network exists until it exits.
 * Trust    Tests.
 */
#pragma once

#include "src/edge/edge.h"
#include "lib/base/mem.h"
#include "lib/wire/dns/test/synth_free.h"

static inline void net_free(struct edge *e)
{
	struct net *net = e->net;

	while (net->first_wait) {
		struct ask_wait *w = net->first_wait;

		net->first_wait = w->next;
		if (w->conn->wait == w)
			w->conn->wait = NULL;
		free(w->ask);
		free(w);
	}
	for (size_t i = 0; i < NET_MAX_CONNS; i++) {
		struct conn *c = net->conns[i];

		if (!c)
			continue;
		c->asking = c->reporting = false;
		conn_over(e, c);
	}
	while (net->channels) {
		struct channel *ch = net->channels;

		net->channels = ch->next;
		if (ch->fd >= 0)
			loop_del(&e->loop, ch->fd);
		fd_close(&ch->fd);
		mux_done(&ch->mux);
		free(ch);
	}
	synth_free(net->synth);
	wire_free(net->port.wire);
	loop_del(&e->loop, net->port.fd);
	fd_close(&net->port.fd);
	free(net->port.out);
	free(TAKE(e->net));
}
