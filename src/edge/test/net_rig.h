/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rig - for net_test.c: a real, sealed sbx-edge whose guest (sbx.net), keeper and egress are
 * played
 *           by the test.
 *
 * How      On top of edge_rig: NET gives edge the port, net_open opens a stream as sbx-guest does.
 *          Each ASK of edge is a row in `asks`; the test answers it by net_allow or net_deny, or
 *          all are answered at once (`decide`). An allowed tunnel is a struct net_way, egress' end
 *          of the socket, whose head was read and checked; way_accept and way_refuse answer it.
 * Trust    Test program.
 */
#pragma once

#include "edge_rig.h"
#include "lib/wire/http/canon/canon_frame.h"

#define NET_RIG_CONNS 4096
#define NET_RIG_GOT 8192 /* bytes kept of what came, for the test to look at */

struct net_side { /* one end of a connection */
	uint8_t *send;
	size_t n_send, sent;
	uint64_t endless, n_endless; /* patterned bytes after that, and how many went */
	bool end, ended;	     /* the end is to follow, was said */
	uint8_t got[NET_RIG_GOT];
	uint64_t n_got;
	bool check;   /* what comes is the pattern */
	bool paused;  /* nothing is taken */
	bool eof;     /* the other's end came */
	size_t taken; /* of the guest: bytes not given back to the window while paused */
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
/* Goes on with the CA of an edge before. */
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
/* What came so far is these bytes. */
bool net_got(const struct net_side *s, const void *p, size_t len);
bool net_got_text(const struct net_side *s, const char *text);

/* The newest question is this one, and unanswered; NULL when it is not there. */
struct net_ask *net_asked(
	struct net_rig *n, enum edge_ask_kind kind, const char *host, uint16_t port);
/* The newest, when it has a fault with this text inside; answered by no. */
bool net_faulted(struct net_rig *n, const char *text);
/* Answers; of a tunnel gives egress' end, with the head read. */
struct net_way *net_allow(struct net_rig *n, struct net_ask *a);
void net_deny(struct net_rig *n, struct net_ask *a, const char *reason);
/* Edge ends the TLS in it. */
void net_allow_opened(struct net_rig *n, struct net_ask *a);
void way_accept(struct net_way *w);
void way_refuse(struct net_way *w, uint16_t status, const char *reason);
void way_say(struct net_way *w, const void *p, size_t len);
/* Frames of an answer to HTTP. */
void way_say_head(struct net_way *w, uint16_t status, enum http_body_kind kind, uint64_t length);
void way_say_data(struct net_way *w, struct slice bytes);
void way_say_end(struct net_way *w);

/* A ClientHello. name NULL: none; ech: hides it. Gives its length. */
size_t net_hello(uint8_t *buf, size_t size, const char *name, bool ech);
/* A DNS query with OPT; gives its length. */
size_t net_query(uint8_t *buf, size_t size, const char *name, uint16_t type);

#define NET_RIG_HOST "example.test"
extern const char net_established[]; /* the answer to an open CONNECT */
struct net_conn *net_ask_dns(struct net_rig *n, const char *path, const char *name, uint16_t type);
/* The address that a name gets, as the path of a connection to it. */
void net_caught_path(struct net_rig *n, const char *name, unsigned port, char path[64]);
struct net_conn *net_open_caught(struct net_rig *n, const char *name, unsigned port);
struct net_conn *net_open_connect(struct net_rig *n, const char *target);
/* The answer to the tunnel that is asked for next; egress accepts it too. */
struct net_way *net_allow_tunnel(struct net_rig *n, const char *host, uint16_t port);
struct net_way *net_accept_tunnel(struct net_rig *n, const char *host, uint16_t port);
/* An open tunnel to port 9999, with no byte counted. */
struct net_way *net_raw_tunnel(struct net_rig *n, struct net_conn **ret);
