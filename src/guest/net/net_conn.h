/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_conn - connections of programs of the guest: one stream each.
 *
 * How      net_conn_open is for connections that were redirected or came to the proxy port. The
 *          connections that the host opens (tcp.h) are in a table of their own.
 *
 *          Data of the program is read when the wire requests it, so a full window stops the
 *          program and nothing is stored here. Data of the host goes to the socket, and the rest
 *          into a queue of one window. Each direction closes separately; a reset on one side is a
 *          reset on the other. Bytes that a program sent before its reset are passed on first if
 *          the wire waits for them.
 * Trust    Programs of the guest, and the host.
 * Owns     The sockets and queues.
 * Limits   The table's max, at most NET_MAX_CONNS; beyond, the connection is reset.
 *          WIRE_STREAM_WINDOW bytes of queue.
 * See      net.h, net_conn_test.c, tcp_test.c
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
	bool is_connecting; /* tcp.h: data of the host waits in the queue */
	bool is_v6;	    /* the second try */
	int fd;
	uint16_t port;
	uint32_t gen;
	uint32_t id;	 /* stream; 0: closed, and the rest of the queue is sent */
	bool waits;	 /* the wire requests data and the program has sent none */
	bool host_ended; /* no more data for the queue */
	bool hung_up;	 /* both directions are closed in the kernel: nothing to wait for */
	bool in_epoll;
	uint32_t events;
	struct bufq queue; /* towards the program */
	struct loop_timer timer;
};

struct net_conns {
	struct loop *loop;
	struct wire *wire; /* NULL while edge is away */
	uint8_t kind;	   /* of the events */
	uint32_t max, first_free;
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

/* For tcp.c. A free one, or NULL when the table is full. */
struct net_conn *net_conn_take(struct net_conns *c);
struct loop_key net_conn_key(const struct net_conns *c, const struct net_conn *k);
/* Closes the socket only, with RST or in order. */
void net_conn_close(struct net_conns *c, struct net_conn *k, bool reset);
/* The same, and frees the slot. The caller handles the stream. */
void net_conn_release(struct net_conns *c, struct net_conn *k, bool reset);
/* Resets both sides: the program has closed or the kernel failed. */
void net_conn_give_up(struct net_conns *c, struct net_conn *k);
/* Sets the wanted events: errors always, the others as needed. */
int net_conn_arm(struct net_conns *c, struct net_conn *k) MUST_CHECK;
/* It is connected now: sends the queue. */
void net_conn_begin(struct net_conns *c, struct net_conn *k);
