/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_state - the state of one HTTP connection: its request, its response and its protocol.
 *
 * How      HTTP/1.1 (proxy_h1.c) and HTTP/2 streams (h2_stream.c) each implement a struct
 *          proxy_tongue.
 * Trust    Internal.
 */
#pragma once

#include "http.h"
#include "lib/wire/http/deny.h"

/* A body up to this size is read and dropped after a denial, so that the connection persists. */
#define PROXY_MAX_DISCARD 65536
/* Size of a read at the start of frames; the data of a frame bypasses this buffer. */
#define PROXY_READ 4096
/* Less room for the guest counts as none: frames would be too small. */
#define PROXY_MIN_ROOM 1024
/* Chunk sizes and line ends; reserved so that they always fit after their data. */
#define PROXY_CHUNK_ROOM 32
/* How often the keeper may want other headers of one request. */
#define PROXY_ASKS 4

enum proxy_state {
	PROXY_HEAD,	/* reading a head; idle between two requests */
	PROXY_ASKED,	/* the keeper decides; the request waits in the arena */
	PROXY_EXCHANGE, /* body to egress, answer to the guest */
	PROXY_DISCARD,	/* denied and answered; the rest of the body is dropped */
	PROXY_RAW,	/* a websocket: bytes both ways */
	PROXY_N_STATES,
};

enum proxy_step { PROXY_WAIT, PROXY_AGAIN, PROXY_GONE };

/* Data that did not fit. At most one head and what was read with it. */
struct proxy_rest {
	uint8_t *buf;
	size_t n, at;
};

/* One request and its answer. */
struct proxy_exchange {
	struct http_req *req;	  /* until its END, which frees the arena */
	char host[EDGE_MAX_HOST]; /* "" while its target is unknown */
	uint16_t port;
	bool is_head, http10, keep_alive, websocket, json;
	unsigned int n_asks; /* the keeper wanted headers */

	/* To egress. */
	bool req_done; /* read to its END */
	bool writable;
	bool deaf; /* egress reads no more; its answer may still arrive */
	bool shut;
	uint8_t data_head[CANON_FRAME_HEADER]; /* of the current DATA frame */
	size_t n_data_head;		       /* its last unsent bytes */
	size_t data_left;		       /* unsent bytes at the front of c->in */

	/* From egress. */
	bool readable;
	bool answered; /* the head of the answer was written */
	bool over;     /* END was received */
	bool close;    /* the answer announced that the connection ends */
	bool in_frame; /* inside a DATA frame that was begun */
	unsigned int n_informational;
	struct canon_flow flow;
	enum http_body_kind out_kind; /* how the guest reads the body */
};

/* The protocol of the guest's side of a connection. */
struct proxy_tongue {
	/* Returns the next event of the body. The payload of DATA stays at the front of c->in, the
	 * rest is consumed. An absent body gives END immediately and consumes nothing. */
	bool (*next_event)(struct edge *e, struct conn *c, struct http1_event *ret);
	/* Writes a head of the answer, also 1xx. Sets x.close and x.out_kind for the final one.
	 * Returns -EBADMSG if it cannot be expressed. */
	int (*say_head)(struct edge *e, struct conn *c, struct http_resp *resp);
	/* The answer is complete. */
	int (*say_end)(struct edge *e, struct conn *c, const struct http_headers *trailers);
	/* Writes a complete answer of edge, as formatted by deny.h; there is room. */
	int (*say_refusal)(struct edge *e, struct conn *c, struct slice text);
	/* Whether all earlier output was sent, so that more may be read. */
	bool (*flush)(struct edge *e, struct conn *c);
	/* Other requests of the connection continue, but none may follow. NULL if the end of this
	 * one ends the connection. */
	void (*go_away)(struct edge *e, struct conn *c);
};

struct proxy {
	const struct proxy_tongue *tongue;
	enum proxy_state state;
	struct http1 h;
	struct arena arena; /* from the first byte of a head to the END of its body */
	bool in_head;	    /* PROXY_HEAD_MS runs */
	struct proxy_exchange x;
	struct canon_reader reader;
	struct proxy_rest to_fd, to_guest;
};
