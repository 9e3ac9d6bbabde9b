/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - a port of the guest, and the table of the connections of sbx.net.
 *
 * How      port.c moves the bytes of a port. conn.c has the table, asks.c the queries.
 * Trust    Internal.
 */
#pragma once

#include <sys/uio.h>
#include "connection.h"

struct edge;

struct port {
	const char *name; /* for people */
	enum edge_ev ev;
	int fd;
	struct wire *wire;
	bool blocked; /* the socket is full; waiting for EPOLLOUT */
	uint8_t *out;
	size_t n_out, out_at;
	void (*on_fed)(struct edge *e); /* after each wire_feed; may be NULL */
};

/* To one sbx-origin. */
struct channel {
	struct channel *next;
	uint32_t id;	  /* keeper's */
	int fd;		  /* -1: closed, while streams of it are left */
	uint32_t watched; /* registered events */
	struct mux mux;
};

/* An unanswered ask. */
struct asked {
	bool used, fault;
	bool tls;  /* an HTTP ask inside TLS: its answer is a stream */
	bool gone; /* the keeper knows that nothing waits for it */
	enum edge_ask_kind kind;
	uint32_t id, idx;
};

struct net {
	struct port port;
	size_t budget; /* EDGE_BUDGET; tests make it small */
	struct synth *synth;
	struct conn *conns[NET_MAX_CONNS];
	uint32_t n_conns, n_most; /* current, and maximum since memory was returned */
	uint32_t next_free, next_gen;
	struct conn *room; /* data was pulled, so an engine is due */
	struct asked asked[NET_ASKS];
	uint32_t n_asked, next_ask;
	struct ask_wait *first_wait, *last_wait;
	struct channel *channels;
	uint32_t due_stream; /* of the verdict that is being handled, until it is taken; 0 */
	/* Data of one tunnel, in the buffer that is being parsed: sent after the last frame. */
	struct conn *gathered;
	struct iovec gather[NET_GATHER];
	unsigned n_gather;
	char sandbox[EDGE_MAX_NAME]; /* its name, by the last verdict */
};
