/*
 * net - the guest's way out: its connections on sbx.net, from the first byte to egress.
 *
 * How      net.c has the wire of sbx.net and the table of connections; conn.c the life of one; sniff.c
 *          says what first bytes are; tunnel.c passes opaque bytes, name.c answers DNS, proxy.c and
 *          proxy_answer.c are HTTP. A connection of the guest is a struct conn. Whoever names its target (a caught
 *          connection by its address, a proxy request by its text) it becomes the same thing: a
 *          target that the keeper is asked about, a socket to egress when the answer is yes, one
 *          refusal when it is no.
 *
 *          /proxy  -> proxy (HTTP engine); CONNECT leaves it by conn_connect
 *          /tcp    -> sniffed for CONN_SNIFF_MS, then asked about; HTTP goes to the HTTP engine
 *          after a target is allowed the guest's first bytes are sniffed before one of them goes
 *          on: TLS must say the target's name, HTTP goes to the HTTP engine, anything else may
 *          pass only on ports other than 80 and 443.
 * Trust    Eats hostile bytes. Holds no secret.
 * Owns     The table of connections and their sockets to egress.
 * Limits   NET_MAX_CONNS, WIRE_NET_WINDOW in, CONN_OUT out, CONN_FIRST_MS for first bytes.
 * Never    Sends a byte of the guest to egress before the keeper's yes and the check of the name.
 * See      proto/PROTOCOL.net, proto/PROTOCOL.canon, README
 */
#pragma once

#include "edge.h"
#include "lib/dns/synth.h"
#include "lib/http/canon_frame.h"
#include "lib/policy/host.h"
#include "lib/tls/hello.h"

#define NET_MAX_CONNS WIRE_NET_STREAMS
#define CONN_OUT 65536
#define CONN_SNIFF_MS 250    /* silence after which a caught connection is asked about */
#define CONN_FIRST_MS 10000  /* silence after which an allowed one on 80 or 443 is cut */
#define PROXY_HEAD_MS 30000  /* for a request's head to be complete */
#define PROXY_IDLE_MS 120000 /* between two requests */

struct proxy; /* the HTTP engine's state of one connection: proxy.c */

enum conn_kind { CONN_FREE, CONN_PROXY, CONN_TCP, CONN_DNS };

enum conn_state {
	CONN_SNIFFING, /* no target is decided yet; first bytes are waited for */
	CONN_ASKED,    /* the keeper decides about the tunnel */
	CONN_OPENING,  /* egress connects */
	CONN_CHECKING, /* open; the guest's first bytes are looked at */
	CONN_TUNNEL,   /* bytes pass */
	CONN_HTTP,     /* the HTTP engine has it */
	CONN_ENDING,   /* what is in `out` goes, then the end */
};

struct conn_target {
	bool given;
	struct host host;
	uint16_t port;
};

struct conn {
	enum conn_kind kind;
	enum conn_state state;
	enum edge_via via;
	uint32_t sid, gen;
	struct conn_target target;
	uint32_t synth_id; /* held while the target came from it */
	bool holds_synth;
	bool asking; /* an ASK is unanswered */
	uint32_t ask_id;
	struct bufq
		in; /* the guest's bytes that nobody has eaten; conn_eat gives the window back */
	struct bufq out; /* bytes for the guest */
	bool in_end;	 /* the guest has ended its direction */
	bool out_end;	 /* END_STREAM follows the last byte of out */
	int fd;		 /* to egress; -1 */
	struct loop_timer timer;
	struct hello_reader *hello; /* while TLS is looked at */
	struct proxy *proxy;	    /* CONN_HTTP */
	bool fd_blocked, fd_eof;
};

/* net.c: called by the rest of edge. */
void net_start(struct edge *e, int fd);
void net_on_event(struct edge *e, uint32_t events);
void net_flush(struct edge *e);
void net_on_conn_event(struct edge *e, struct loop_event ev); /* a socket to egress */
void net_on_timer(struct edge *e, struct loop_key key);
void net_on_verdict(struct edge *e, uint32_t id, const struct edge_verdict *verdict, int fd);

/* conn.c: what a part that has the connection may do with it. After conn_reset and conn_end the
 * caller touches it no more. */
/* n bytes of c->in are done with. */
void conn_eat(struct edge *e, struct conn *c, size_t n);
static inline size_t conn_room(const struct conn *c)
{
	return bufq_space(&c->out);
}
/* Must fit conn_room. */
void conn_say(struct edge *e, struct conn *c, struct slice bytes);
/* The guest gets what is in out, then the end. What it sends is dropped. */
void conn_end(struct edge *e, struct conn *c);
void conn_reset(struct edge *e, struct conn *c);
/* One question at a time; the answer goes to the part that has the connection. */
void conn_ask(struct edge *e, struct conn *c, const struct edge_ask *ask);
/* Tells the keeper what edge has refused by itself; no answer comes back to the connection. */
void conn_report_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind, const char *fault);
/* Takes fd as c->fd and watches it (edge-triggered, both ways). */
int conn_take_fd(struct edge *e, struct conn *c, int fd) MUST_CHECK;
void conn_drop_fd(struct edge *e, struct conn *c);
void conn_set_timer(struct edge *e, struct conn *c, uint64_t ms); /* 0: none */
/* The HTTP engine read CONNECT: its head is eaten, it has freed its state. The target becomes the connection's,
 * the keeper is asked; the guest gets 200, or a refusal by deny_write_connect. */
void conn_connect(struct edge *e, struct conn *c, const struct host *host, uint16_t port);

/* proxy.c: the HTTP engine. c->target is given when the target is fixed (caught, or inside a CONNECT). */
void proxy_begin(struct edge *e, struct conn *c);
void proxy_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void proxy_on_room(struct edge *e, struct conn *c);
/* fd is taken, -1 without one. */
void proxy_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd);
void proxy_on_fd(struct edge *e, struct conn *c, uint32_t events);
void proxy_on_timer(struct edge *e, struct conn *c);
void proxy_free(struct edge *e, struct conn *c);
