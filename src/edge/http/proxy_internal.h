/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_internal - what the parts of the HTTP engine share.
 *
 * A request and its answer are the same whether they came as HTTP/1.1 (proxy_h1.c) or in a stream
 * of HTTP/2 (h2_stream.c): how they are read and said is a struct proxy_tongue, what is done with
 * them is here. One connection is in one state, and each state has one function that goes on as far
 * as bytes, room and sockets allow (proxy_pump). A function that gives PROXY_GONE has given the
 * connection away: its caller touches it no more.
 */
#pragma once

#include "lib/wire/http/deny.h"
#include "lib/wire/http/http1.h"
#include "src/edge/conn/net.h"

/* A body up to this size is read and dropped after a refusal, so that the connection lives on. */
#define PROXY_MAX_DISCARD 65536
/* Read at once where frames begin; the body of a frame goes around this. */
#define PROXY_READ 4096
/* Less room than this for the guest is none: frames would come in crumbs. */
#define PROXY_MIN_ROOM 1024
/* Sizes and line ends of chunks; kept free so that they always fit behind their data. */
#define PROXY_CHUNK_ROOM 32

enum proxy_state {
	PROXY_HEAD,	/* a head is read; between two requests nothing is held */
	PROXY_ASKED,	/* the keeper decides; the request waits in the arena */
	PROXY_EXCHANGE, /* the body goes to egress, the answer comes back */
	PROXY_DISCARD,	/* refused and answered; what is left of the body is dropped */
	PROXY_RAW,	/* a websocket: bytes both ways */
	PROXY_N_STATES,
};

enum proxy_step { PROXY_WAIT, PROXY_AGAIN, PROXY_GONE };

/* Bytes that did not fit where they go. Never more than one head and what was read with it. */
struct proxy_rest {
	uint8_t *buf;
	size_t n, at;
};

/* One request and its answer. */
struct proxy_exchange {
	struct http_req *req;	  /* until its END: then the arena is gone */
	char host[EDGE_MAX_HOST]; /* "" while its target is not known */
	uint16_t port;
	bool is_head, http10, keep_alive, websocket, json;

	/* To egress. */
	bool req_done; /* read to its END */
	bool writable;
	bool deaf; /* egress takes no more; its answer may still come */
	bool shut;
	uint8_t data_head[CANON_FRAME_HEADER]; /* of the DATA frame under way */
	size_t n_data_head;		       /* the last bytes of it, unsent */
	size_t data_left;		       /* unsent bytes at the front of c->in */

	/* From egress. */
	bool readable;
	bool answered; /* the head of the answer is said */
	bool over;     /* its END has come */
	bool close;    /* the guest was told that the connection ends after it */
	bool in_frame; /* inside a DATA frame that was begun */
	unsigned int n_informational;
	struct canon_flow flow;
	enum http_body_kind out_kind; /* how the guest reads the body */
};

/* How the guest's side of a connection is spoken. */
struct proxy_tongue {
	/* The next event of the body. The data of a DATA stays at the front of c->in, everything
	 * else is eaten. A body that is not there gives its END at once and eats nothing. */
	bool (*next_event)(struct edge *e, struct conn *c, struct http1_event *ret);
	/* A head of the answer, 1xx ones too. It has set x.close and x.out_kind when it is the last
	 * one. -EBADMSG when it cannot be said. */
	int (*say_head)(struct edge *e, struct conn *c, struct http_resp *resp);
	/* The answer is complete. */
	int (*say_end)(struct edge *e, struct conn *c, const struct http_headers *trailers);
	/* A whole answer of our own, as deny.h has written it; there is room. */
	int (*say_refusal)(struct edge *e, struct conn *c, struct slice text);
	/* Whether what was said before has left, so that more may be read. */
	bool (*flush)(struct edge *e, struct conn *c);
	/* Other requests of the connection go on, but none may follow them. NULL where the end of
	 * this one is the end of the connection. */
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

/* proxy_h1.c */
extern const struct proxy_tongue proxy_h1;
/* Bytes for the guest; what does not fit c->out waits in to_guest. */
void proxy_say(struct edge *e, struct conn *c, struct slice bytes);
/* Whether nothing is left of what did not fit into c->out before. */
bool proxy_flush_guest(struct edge *e, struct conn *c);

/* proxy.c */
struct proxy *proxy_new(struct conn *c, const struct proxy_tongue *tongue);
void proxy_pump(struct edge *e, struct conn *c);
/* The answer is out: what is in c->out goes, then the connection ends. */
enum proxy_step proxy_finish(struct edge *e, struct conn *c);
/* The connection ends in a way that nobody takes for the end of an answer. */
enum proxy_step proxy_hang_up(struct edge *e, struct conn *c);
/* Ready for the next request; this one is read to its END. */
enum proxy_step proxy_next(struct edge *e, struct conn *c);
void proxy_rest_add(struct proxy_rest *rest, struct slice bytes);
void proxy_rest_eat(struct proxy_rest *rest, size_t n);
static inline struct slice proxy_rest_slice(const struct proxy_rest *rest)
{
	return slice_of(rest->buf ? rest->buf + rest->at : NULL, rest->n);
}

/* proxy_request.c */
enum proxy_step proxy_read_head(struct edge *e, struct conn *c);
/* A request as it was read. It must live until its END. */
enum proxy_step proxy_on_head(struct edge *e, struct conn *c, struct http_req *req);
enum proxy_step proxy_discard(struct edge *e, struct conn *c);
/* c->fd is there: the head goes to egress. */
enum proxy_step proxy_start_exchange(struct edge *e, struct conn *c);
enum proxy_step proxy_send_body(struct edge *e, struct conn *c);
/* What the socket takes of the bytes now; 0 when it takes none, and then x.writable is false or
 * x.deaf true. */
size_t proxy_send_some(struct conn *c, struct slice head, struct slice bytes);

/* proxy_answer.c */
enum proxy_step proxy_read_answer(struct edge *e, struct conn *c);
/* Nothing more comes from egress: 0 at the end of the file, or a negative errno. */
enum proxy_step proxy_on_fd_end(struct edge *e, struct conn *c, ssize_t r);

/* proxy_refuse.c */
/* The request could not be read, or its names do not agree. */
enum proxy_step proxy_refuse(struct edge *e, struct conn *c, const struct http_fault *fault);
enum proxy_step proxy_deny(struct edge *e, struct conn *c, const struct edge_verdict *verdict);
/* Allowed, and it came to nothing: 403 when egress refused it by its own copy of the policy. */
enum proxy_step proxy_fail(struct edge *e, struct conn *c, uint16_t status, struct slice reason);
