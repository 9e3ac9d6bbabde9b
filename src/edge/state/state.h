/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state of sbx-edge that all parts share.
 *
 * How      struct edge has the two ports, the bridges of sbx.ctl and the connections of sbx.net.
 *          control.c is called through struct keeper_ops, which main.c sets; the engines and TLS
 *          through struct conn_ops, which net_start sets.
 * Trust    Internal.
 */
#pragma once

#include "net.h"

struct bridge {
	bool used;
	bool stream;		   /* the HTTP/2 stream exists */
	bool guest_ended;	   /* the guest has closed its direction */
	bool host_ended;	   /* the socket has no more bytes */
	bool hup;		   /* the socket is closed in both directions */
	bool replied;		   /* the guest's head was received */
	bool opened_due, over_due; /* reports to send; over_due: the last one */
	uint16_t status;
	enum edge_reason reason;
	int fd;
	uint32_t gen;
	uint32_t id;  /* keeper's */
	uint32_t sid; /* the stream's */
	struct bufq to_host;
	struct loop_timer linger;
};

struct edge;
struct opener; /* the sandbox's CA: open_ca.c */

/* control.c */
struct keeper_ops {
	/* Sends due reports of a bridge, or later if the keeper does not read; frees it at the
	 * end. */
	void (*report)(struct edge *e, struct bridge *b);
	/* All bridges are in use. */
	void (*refuse)(struct edge *e, uint32_t id);
	void (*ready)(struct edge *e);
	/* The guest or the wire is lost: informs the keeper and stops the loop. */
	void (*lost)(struct edge *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
	/* Returns 0, or -EAGAIN if the keeper does not read now (asks_flush is called when it does
	 * again) or has exited. */
	int (*send_ask)(struct edge *e, uint32_t id, const struct edge_ask *ask);
	/* Nothing waits for its verdict, or (ended) the guest has closed its direction. Returns as
	 * send_ask. */
	int (*send_left)(struct edge *e, uint32_t id, bool ended);
};

/* Operations of conn.c on the engine or TLS that has the connection. */
struct conn_ops {
	void (*drop_engine)(struct edge *e, struct conn *c); /* frees c->proxy and c->h2 */
	void (*deafen_tls)(struct edge *e, struct conn *c);  /* drops input of the guest */
	void (*free_tls)(struct conn *c);
	/* CONN_STREAM: its data and its end are inside another connection. */
	void (*stream_consumed)(struct edge *e, struct conn *c, size_t n);
	void (*stream_resume)(struct edge *e, struct conn *c);
	void (*stream_reset)(struct edge *e, struct conn *c);
	void (*stream_over)(struct edge *e, struct conn *c);
};

struct edge {
	const struct keeper_ops *keeper;
	const struct conn_ops *conn_ops;
	struct loop loop;
	struct control control;
	struct port ctl;
	struct wire *wire;     /* of ctl */
	struct net *net;       /* NULL until the keeper sends NET */
	struct opener *opener; /* NULL until CONFIG */
	struct bridge bridges[EDGE_MAX_STREAMS];
	struct loop_timer ready_timer;
	uint32_t ready_ms;
	uint32_t first_ms; /* for the guest's first bytes, and for its TLS handshake */
	/* A refused OPEN that is not reported yet; only one, as nothing is read meanwhile. */
	bool refused_due;
	uint32_t refused_id;
};
