/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rig - for net_test.c: a real, sealed sbx-edge with guest (sbx.net), keeper and egress played
 * by the test.
 *
 * How      Uses edge_rig: NET gives edge the port, net_open opens a stream as sbx-guest does. Each
 *          ASK of edge is a row in `asks`; the test answers it by net_allow or net_deny, or all are
 *          answered immediately (`decide`). An allowed tunnel is a struct net_way, egress's end of
 *          the socket, whose head was read and checked; way_accept and way_refuse answer it.
 * Trust    Test program.
 */
#pragma once

#include "edge_rig.h"
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/wire/mux/test/mux_rig.h"

#define NET_RIG_CONNS 4096
#define NET_RIG_GOT 8192 /* received bytes kept for the test */

struct net_side { /* one end of a connection */
	uint8_t *send;
	size_t n_send, sent;
	uint64_t endless, n_endless; /* patterned bytes after that, and the number sent */
	bool end, ended;	     /* close after that; closed */
	uint8_t got[NET_RIG_GOT];
	uint64_t n_got;
	bool check;   /* expect the pattern */
	bool paused;  /* reads nothing */
	bool eof;     /* the peer closed */
	size_t taken; /* of the guest: bytes not returned to the window while paused */
	void (*on_got)(void *ctx, struct slice bytes); /* may be NULL */
	void *ctx;
};

struct net_conn { /* the guest's end */
	uint32_t sid;
	bool open, closed, reset;
	unsigned status;
	struct net_side side;
};

struct net_ask {
	uint32_t id;
	struct edge_ask ask;
	bool answered;
};

struct net_way { /* egress' end */
	int fd;
	bool has_head, gone;
	char host[EDGE_MAX_HOST];
	uint16_t port;
	struct net_side side;
};

enum net_decide { NET_BY_HAND, NET_ALLOW, NET_DENY };

struct net_rig {
	struct rig *rig;
	struct mux_rig origin; /* of all requests inside TLS */
	uint32_t n_streams;
	int fd;
	struct wire *guest;
	bool deaf; /* the guest neither reads nor writes */
	bool ready;
	enum net_decide decide; /* NET_ALLOW: tunnels are accepted too */
	uint8_t *out;
	size_t n_out, out_at;
	struct net_conn *conns[NET_RIG_CONNS];
	unsigned n_conns;
	struct net_ask *asks;
	unsigned n_asks, n_unanswered, most_unanswered;
	struct net_way *ways[NET_RIG_CONNS];
	unsigned n_ways;
};

struct net_rig *net_new(void);
/* Uses the CA of an earlier edge. */
struct net_rig *net_new_saved(const struct edge_ca *ca);
void net_free(struct net_rig *n);
void net_step(struct net_rig *n, int ms);
#define net_until(n, cond)                                                                 \
	do {                                                                               \
		uint64_t _end = clock_mono_ms() + 60000;                                   \
		while (!(cond)) {                                                          \
			net_step(n, 20);                                                   \
			if (clock_mono_ms() > _end)                                        \
				fail_msg("line %d: never came true: %s", __LINE__, #cond); \
		}                                                                          \
	} while (0)
void net_for(struct net_rig *n, unsigned ms);

struct net_conn *net_open(struct net_rig *n, const char *path);
void net_say(struct net_rig *n, struct net_conn *c, const void *p, size_t len);
void net_end(struct net_rig *n, struct net_conn *c);
void net_pause(struct net_rig *n, struct net_conn *c, bool paused);
/* The received data is exactly this. */
bool net_got(const struct net_side *s, const void *p, size_t len);
bool net_got_text(const struct net_side *s, const char *text);

/* Returns the newest ask if it matches and is unanswered, else NULL. */
struct net_ask *net_asked(
	struct net_rig *n, enum edge_ask_kind kind, const char *host, uint16_t port);
/* The newest ask, if its fault contains this text; answered with a denial. */
bool net_faulted(struct net_rig *n, const char *text);
/* Answers; for a tunnel returns egress's end, with the head read. */
struct net_way *net_allow(struct net_rig *n, struct net_ask *a);
void net_deny(struct net_rig *n, struct net_ask *a, const char *reason);
/* Wants the headers with these names. */
void net_want(struct net_rig *n, struct net_ask *a, const char *names, uint32_t id);
/* Edge intercepts its TLS, and sends the header x-a with each request (wants_id 5). */
void net_allow_opened(struct net_rig *n, struct net_ask *a);
void way_accept(struct net_way *w);
void way_refuse(struct net_way *w, uint16_t status, const char *reason);
void way_say(struct net_way *w, const void *p, size_t len);
/* Frames of an answer to HTTP. */
void way_say_head(struct net_way *w, uint16_t status, enum http_body_kind kind, uint64_t length);
void way_say_data(struct net_way *w, struct slice bytes);
void way_say_end(struct net_way *w);

/* Builds a ClientHello. name NULL: none; ech: hides it. Returns its length. */
size_t net_hello(uint8_t *buf, size_t size, const char *name, bool ech);
/* Builds a DNS query with OPT; returns its length. */
size_t net_query(uint8_t *buf, size_t size, const char *name, uint16_t type);

#define NET_RIG_HOST "example.test"
extern const char net_established[]; /* the answer to an open CONNECT */
struct net_conn *net_ask_dns(struct net_rig *n, const char *path, const char *name, uint16_t type);
/* The address that a name gets, as the path of a connection to it. */
void net_caught_path(struct net_rig *n, const char *name, unsigned port, char path[64]);
struct net_conn *net_open_caught(struct net_rig *n, const char *name, unsigned port);
struct net_conn *net_open_connect(struct net_rig *n, const char *target);
/* Allows the next ask for a tunnel; net_accept_tunnel also accepts it as egress. */
struct net_way *net_allow_tunnel(struct net_rig *n, const char *host, uint16_t port);
struct net_way *net_accept_tunnel(struct net_rig *n, const char *host, uint16_t port);
/* An open tunnel to port 9999, with no byte counted. */
struct net_way *net_raw_tunnel(struct net_rig *n, struct net_conn **ret);
