/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_rig - the HTTP engine with a guest, a keeper and an egress played by the test.
 *
 * How      Replaces conn.c: the conn_* functions here keep one connection whose data the test reads
 *          and writes. The socket to egress is a real pair, watched edge-triggered as in edge.
 *          proxy_rig_turn moves data until nothing changes. conn_end, conn_reset and conn_connect
 *          free the struct conn: a sanitizer detects later uses.
 * Trust    Test code; never linked into a program.
 * Owns     The connection, the socket pair, the data seen on both sides.
 * See      proxy_test.c, proxy_fuzz.c, proxy_pipe.c
 */
#pragma once

#include "src/edge/edge.h"

#define RIG_MAX_ASKS 256

struct proxy_rig_bytes {
	uint8_t *p; /* with a NUL after the last byte, for strstr */
	size_t n, at;
};

enum proxy_rig_end { RIG_OPEN, RIG_ENDED, RIG_RESET, RIG_CONNECT };

struct proxy_rig {
	struct edge edge; /* first: the conn_* functions find the rig by it */
	struct conn *c;	  /* NULL after its end */
	enum proxy_rig_end end;
	int epfd;

	/* The guest. */
	struct proxy_rig_bytes to_say; /* not in the window yet */
	size_t piece;		       /* bytes per read; 0: all */
	bool to_end;
	size_t reads; /* bytes that the guest still takes; SIZE_MAX: all */
	struct proxy_rig_bytes got;
	size_t max_out; /* the most that ever waited in c->out */

	/* The keeper. */
	unsigned int n_asks, n_faults;
	struct edge_ask ask;
	char fault[EDGE_MAX_TEXT], fault_host[EDGE_MAX_HOST];
	uint16_t fault_port;
	uint64_t timer_ms;
	bool was_head[RIG_MAX_ASKS]; /* which of the first requests were HEAD */
	int decide;		     /* 0: by hand; 1: allow; -1: deny; 2: allow without a socket */
	uint32_t n_denied;
	struct host connect_host;
	uint16_t connect_port;

	/* Egress. */
	int far; /* egress's end; -1 */
	bool deaf;
	struct proxy_rig_bytes to_answer;
	bool hang_up; /* after to_answer */
	struct canon_reader reader;
	struct canon_flow flow; /* frames of edge must be in order; else the rig aborts */
	bool raw;
	struct proxy_rig_bytes body;
	struct http_body body_kind;
	bool websocket;
	struct proxy_rig_bytes seen; /* requests as written to an origin */
	size_t n_requests, n_raw, n_bad;
	size_t begun, n_whole; /* bytes of `seen` before and with the last request */
	/* Called for each complete request; answers it. */
	void (*answer)(struct proxy_rig *r);
};

/* target: NULL for a connection to the proxy port, else a fixed one. */
struct proxy_rig *proxy_rig_new(const char *target, uint16_t port);
void proxy_rig_free(struct proxy_rig *r);
void proxy_rig_add(struct proxy_rig_bytes *b, struct slice bytes);
/* Sends text as the guest, then runs a turn. */
void proxy_rig_say(struct proxy_rig *r, const char *text);
void proxy_rig_turn(struct proxy_rig *r);
void proxy_rig_verdict(struct proxy_rig *r, bool allowed);
void proxy_rig_timer(struct proxy_rig *r);
/* Frames of egress, sent at the next turn. Headers: "name: value" lines, or NULL. */
void proxy_rig_head(struct proxy_rig *r, uint16_t status, enum http_body_kind kind, uint64_t length,
	bool absent);
void proxy_rig_head_with(
	struct proxy_rig *r, struct http_resp *resp, const char *name, const char *value);
void proxy_rig_data(struct proxy_rig *r, struct slice bytes);
void proxy_rig_finish(struct proxy_rig *r, const char *trailer, const char *value);
/* An answer that ends the request: 200 without content, or 101. */
void proxy_rig_ok(struct proxy_rig *r);
/* lib/rules/policy's canonical form, as in the engine. */
int proxy_rig_host(struct slice text, char *buf, size_t size);
