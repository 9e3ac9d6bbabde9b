/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_conn - redirected connections and connections to the proxy port: one stream each.
 *
 * How      Data of the program is read when the wire requests it, so a full window stops the
 *          program and nothing is stored here. Data of the host goes to the socket, and the rest
 *          into a queue of one window. Each direction closes separately; a reset on one side is a
 *          reset on the other.
 * Trust    Programs of the guest, and the host.
 * Owns     The sockets and queues.
 * Limits   NET_MAX_CONNS; beyond, the connection is reset. WIRE_STREAM_WINDOW bytes of queue.
 * See      net.h
 */
#pragma once

#include <sys/types.h>
#include "lib/base/bufq.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

/* Leaves streams for DNS. */
#define NET_MAX_CONNS 1200

struct net_conn {
	bool used;
	int fd;
	uint32_t gen;
	uint32_t id;	 /* stream; 0: closed, and the rest of the queue is sent */
	bool waits;	 /* the wire requests data and the program has sent none */
	bool host_ended; /* no more data for the queue */
	bool hung_up;	 /* both directions are over for the kernel: no use in waiting */
	bool in_epoll;
	uint32_t events;
	struct bufq queue; /* towards the program */
};

struct net_conns {
	struct loop *loop;
	struct wire *wire; /* NULL while edge is away */
	uint32_t first_free;
	unsigned n_used;
	struct net_conn conns[NET_MAX_CONNS];
};

/* Takes fd, a new connection; resets it on failure. */
void net_conn_open(struct net_conns *c, int fd, const char *path);
void net_conn_on_event(struct net_conns *c, const struct loop_event *ev);
ssize_t net_conn_pull(struct net_conns *c, uint32_t idx, uint8_t *buf, size_t n);
void net_conn_on_data(struct net_conns *c, uint32_t idx, struct slice bytes);
void net_conn_on_end(struct net_conns *c, uint32_t idx);
void net_conn_on_close(struct net_conns *c, uint32_t idx, int error);
/* Edge has closed: resets all connections with a stream. */
void net_conn_drop_all(struct net_conns *c);
/* Closes with RST. */
void net_conn_refuse(int fd);
