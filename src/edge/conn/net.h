/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - the guest's way out: its connections on sbx.net, from the first byte to egress.
 *
 * How      net.c has the wire of sbx.net and the table of connections; conn.c what all parts do
 *          with one; asks.c the questions to the keeper; caught.c connections that were caught on
 *          their way; sniff.c says what first bytes are and check.c whether they may go on;
 *          tunnel.c opens and passes opaque bytes, open.c ends TLS where the keeper wants it,
 *          name.c answers DNS, proxy.c and proxy_answer.c are HTTP. A connection of the guest is a
 *          struct conn. Whoever names its target (a caught connection by its address, a proxy
 *          request by its text) it becomes the same thing: a target that the keeper is asked about,
 *          a socket to egress when it allows it, else one refusal. /may only asks the keeper.
 *          /proxy  -> proxy (HTTP engine); CONNECT leaves it by conn_connect
 *          /tcp    -> sniffed for CONN_SNIFF_MS, then asked about; HTTP goes to the HTTP engine
 *          after a target is allowed the guest's first bytes are sniffed before one of them goes
 *          on: TLS must say the target's name, HTTP goes to the HTTP engine, anything else may
 *          pass only on ports other than 80 and 443. A second ClientHello (HelloRetryRequest) must
 *          say the target's name too. A target whose TLS ends here has no socket: open.c puts
 *          itself between the wire and the HTTP engine, whose requests are asked about.
 * Trust    Eats hostile bytes. Holds no credential; the key of a CA that this guest alone trusts.
 * Owns     The table of connections and their sockets to egress.
 * Limits   NET_MAX_CONNS, one whose question is unanswered included even when the guest has reset
 *          it; NET_ASKS questions under way, the others wait; WIRE_NET_WINDOW in, CONN_OUT out,
 *          OPEN_* inside TLS, CONN_*_MS for each wait, EDGE_BUDGET for everything.
 * Never    Sends a byte of the guest to egress before the keeper's yes and the check of the name.
 * See      proto/PROTOCOL.net, proto/PROTOCOL.canon, README
 */
#pragma once

#include <sys/uio.h>
#include "src/edge/edge.h"
#include "lib/wire/dns/synth.h"
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/rules/policy/host.h"
#include "lib/wire/tls/hello.h"
#include "lib/wire/tls/retry.h"

#define NET_MAX_CONNS WIRE_NET_STREAMS
#define CONN_OUT 65536
#define CONN_SNIFF_MS 250    /* silence after which a caught connection is asked about */
#define CONN_OPEN_MS 120000  /* for egress to connect: longer than all it tries itself */
#define CONN_END_MS 120000   /* for the last bytes to move a little */
#define PROXY_HEAD_MS 30000  /* for a request's head to be complete */
#define PROXY_IDLE_MS 120000 /* between two requests */
/* So few that all their verdicts, each with an fd, fit the keeper's socket whatever edge does. */
#define NET_ASKS 64
#define NET_GATHER 16 /* pieces of one connection that are sent together */
/* Of an opened connection: what is inside its TLS, each way, and the records for the guest. TLS
 * itself holds one record each way while it is not complete. */
#define OPEN_IN 16384
#define OPEN_OUT 32768
#define OPEN_RECORD 16128  /* so that a record is not longer than a frame of the wire */
#define OPEN_RECORDS 17408 /* one record and a few words of TLS's own */

struct proxy; /* the HTTP engine's state of one connection: proxy.c */
struct open;  /* the TLS layer's: open.c */
struct h2;    /* the HTTP/2 engine's: h2.c */
struct h2_stream;

/* CONN_STREAM: a stream of HTTP/2 inside another connection. */
enum conn_kind { CONN_FREE, CONN_PROXY, CONN_TCP, CONN_MAY, CONN_DNS, CONN_AGENT, CONN_STREAM };

enum conn_state {
	CONN_SNIFFING, /* no target is decided yet; first bytes are waited for */
	CONN_ASKED,    /* the keeper decides about the tunnel */
	CONN_OPENING,  /* egress connects */
	CONN_CHECKING, /* open; the guest's first bytes are looked at */
	CONN_TUNNEL,   /* bytes pass */
	CONN_SHAKING,  /* the guest's TLS handshake with us */
	CONN_HTTP,     /* the HTTP engine has it */
	CONN_H2,       /* the HTTP/2 engine has it */
	CONN_ENDING,   /* what is in `out` goes, then the end */
};

struct conn_target {
	bool given;
	struct host host;
	uint16_t port;
};

struct ask_wait; /* a question that is not sent yet: asks.c */

struct conn {
	enum conn_kind kind;
	enum conn_state state;
	enum edge_via via;
	enum edge_proto proto; /* as far as it was seen */
	uint32_t idx;	       /* its place in the table */
	uint32_t sid, gen;     /* sid is 0 when the stream is over */
	struct conn_target target;
	uint32_t synth_id; /* held while the target came from it */
	bool holds_synth;
	bool asking;	       /* an ASK is unanswered */
	bool reporting;	       /* an ASK with a fault is */
	struct ask_wait *wait; /* the ASK while it was not sent */
	struct bufq
		in; /* the guest's bytes that nobody has eaten; conn_eat gives the window back */
	struct bufq out; /* bytes for the guest */
	bool in_end;	 /* the guest has ended its direction */
	bool out_end;	 /* END_STREAM follows the last byte of out */
	int fd;		 /* to egress; -1 */
	struct loop_timer timer;
	struct hello_reader *hello; /* while TLS is looked at */
	/* CONN_TUNNEL, until it is clear that no second ClientHello follows or it was checked.
	 * Of `in` the first n_may bytes may go to the server, and the reader has seen the first
	 * n_seen. */
	struct retry *retry;
	size_t n_may, n_seen;
	struct proxy *proxy;	  /* CONN_HTTP */
	struct h2 *h2;		  /* CONN_H2 */
	struct h2_stream *stream; /* CONN_STREAM: its place in the other connection */
	/* Once the guest's TLS ends here: `in` and `out` are then what is inside. */
	struct open *open;
	const struct host *sni; /* what its ClientHello named; NULL: nothing */
	bool opened;		/* the keeper said that TLS to the target ends here */
	bool in_cut;		/* in_end came without the guest's close_notify */
	bool out_cut; /* out is not all that it should have been: the end is no clean one */
	bool fd_blocked, fd_eof;
	struct canon_reader *reader; /* CONN_OPENING: of egress' answer */
	bool over_udp;		     /* CONN_DNS: what the answer must fit */
	bool answered;		     /* the guest's CONNECT got its 200 */
	bool server_spoke;	     /* the guest has got bytes of the server */
	uint64_t n_pulled;	     /* by the guest, and what it was when the timer was set */
	uint64_t n_pulled_then;
	struct conn *next_room; /* in the list of those that have room again */
	bool in_room;
};

/* Whether what it says is inside TLS that ends here. */
static inline bool conn_is_opened(const struct conn *c)
{
	return c->open || c->kind == CONN_STREAM;
}

/* A question that the keeper has not answered. */
struct asked {
	bool used, fault;
	enum edge_ask_kind kind;
	uint32_t id, idx;
};

struct net {
	struct port port;
	size_t budget; /* EDGE_BUDGET; tests make it small */
	struct synth *synth;
	struct conn *conns[NET_MAX_CONNS];
	uint32_t n_conns, n_most; /* now, and the most since memory was given back */
	uint32_t next_free, next_gen;
	struct conn *room; /* pulled from, so that proxy_on_room is due */
	struct asked asked[NET_ASKS];
	uint32_t n_asked, next_ask;
	struct ask_wait *first_wait, *last_wait;
	/* Bytes of one tunnel, in the buffer that is being read: sent when it is read to its
	 * end. */
	struct conn *gathered;
	struct iovec gather[NET_GATHER];
	unsigned n_gather;
	char sandbox[EDGE_MAX_NAME]; /* its name, by the last verdict */
};

/* net.c: called by the rest of edge. */
void net_start(struct edge *e, int fd);
void net_done(struct edge *e); /* frees everything; the loop must still be there */
void net_on_event(struct edge *e, uint32_t events);
void net_flush(struct edge *e);
void net_on_conn_event(struct edge *e, struct loop_event ev); /* a socket to egress */
void net_on_timer(struct edge *e, struct loop_key key);
/* fd is taken. -EBADMSG when the keeper answers what was not asked. */
int net_on_verdict(
	struct edge *e, uint32_t id, const struct edge_verdict *verdict, int fd) MUST_CHECK;
/* open_on_room or the engine's is due for it: it has room again, or something to say into it. */
void net_note_room(struct edge *e, struct conn *c);
/* The connection that a part has called away from may be gone: NULL then. */
struct conn *net_find(struct edge *e, uint32_t idx, uint32_t gen);

/* asks.c */
void asks_put(struct edge *e, struct conn *c, const struct edge_ask *ask);
/* Its question, if not sent yet, is not sent any more. */
void asks_forget(struct edge *e, struct conn *c);
void asks_flush(struct edge *e);
/* Takes an answered question out of the table: -EBADMSG when there is none like it. */
int asks_take(struct edge *e, uint32_t id, struct asked *ret) MUST_CHECK;
void asks_done(struct edge *e);

/* budget.c */
extern size_t budget_used; /* counted by budget_alloc.c, which only sbx-edge has */
bool budget_is_over(const struct edge *e);
/* Closes the largest connections while there is too much. Called before a step that can grow
 * one, never within one: any connection may be gone afterwards. */
void budget_keep(struct edge *e);
/* Tells the keeper what was done to the connection. */
void budget_report(struct edge *e, struct conn *c, const char *what);

/* caught.c: /tcp/ADDR/PORT, and /may/ADDR/PORT, the question before it */
int caught_may(struct edge *e, struct conn *c, const char *addr_and_port) MUST_CHECK;
void caught_on_may(struct edge *e, struct conn *c, const struct edge_verdict *verdict);
int caught_open(struct edge *e, struct conn *c, const char *addr_and_port) MUST_CHECK;
void caught_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void caught_on_timer(struct edge *e, struct conn *c);

/* check.c: the first bytes of an open tunnel */
void check_begin(struct edge *e, struct conn *c);
/* `bytes` are new at the end of c->in; or c->in_end. */
void check_on_bytes(struct edge *e, struct conn *c, struct slice bytes);
void check_on_timer(struct edge *e, struct conn *c);
/* Whether what the server says must wait until the guest's first bytes are known. */
bool check_holds(const struct conn *c);
/* CONN_TUNNEL: what the server sent, nothing at its end. The rest follows in tunnel_on_room. */
void check_on_server(struct edge *e, struct conn *c, struct slice bytes);
/* Looks at new bytes of c->in, and at c->in_end. False: the connection was cut. */
bool check_second(struct edge *e, struct conn *c);

/* tunnel.c */
void tunnel_ask(struct edge *e, struct conn *c);
void tunnel_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd);
void tunnel_on_fd(struct edge *e, struct conn *c, uint32_t events);
void tunnel_on_timer(struct edge *e, struct conn *c);
void tunnel_begin(struct edge *e, struct conn *c); /* the check is passed: c->in goes on */
void tunnel_on_bytes(struct edge *e, struct conn *c, struct slice bytes);
void tunnel_on_end(struct edge *e, struct conn *c);
void tunnel_on_room(struct edge *e, struct conn *c); /* after check_on_server */
ssize_t tunnel_pull(struct edge *e, struct conn *c, uint8_t *buf, size_t n);
/* Sends what was gathered. */
void tunnel_flush(struct edge *e);

/* name.c: DNS */
void name_on_end(struct edge *e, struct conn *c); /* the query is complete */
void name_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict);
bool name_is_gateway(const struct addr *a);
bool name_is_synthetic(const struct addr *a);

/* conn.c: the table calls these. */
struct conn *conn_new(struct edge *e, enum conn_kind kind, uint32_t sid);
/* Everything of it but its unanswered questions is over; gone when there are none. */
void conn_over(struct edge *e, struct conn *c);
void conn_free_if_over(struct edge *e, struct conn *c);
/* First bytes are HTTP: to the HTTP engine, with c->target as it is. */
void conn_to_http(struct edge *e, struct conn *c);
/* To the engine that has it: proxy.c's or h2.c's. */
void conn_engine_on_bytes(struct edge *e, struct conn *c);
void conn_engine_on_room(struct edge *e, struct conn *c);
/* A fatal TLS alert that says why, then the end. */
#define CONN_ALERT_DENIED 49
#define CONN_ALERT_NAME 112
void conn_alert(struct edge *e, struct conn *c, uint8_t alert);
/* The whole queue in its one or two runs. */
void conn_runs(const struct bufq *q, struct slice ret[2]);

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
/* Tells the keeper what edge has refused by itself; no answer comes back to the connection. While
 * one is unanswered another of the same connection is dropped: there is one refusal to show. */
void conn_report_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind, const char *fault);
/* The same for a connection without a target: host is canonical, or "" when it is not known. */
void conn_report_named_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind,
	const char *host, uint16_t port, const char *fault);
/* Takes fd as c->fd and watches it (edge-triggered, both ways). */
int conn_take_fd(struct edge *e, struct conn *c, int fd) MUST_CHECK;
void conn_drop_fd(struct edge *e, struct conn *c);
void conn_set_timer(struct edge *e, struct conn *c, uint64_t ms); /* 0: none */
/* The HTTP engine read CONNECT: its head is eaten, it has freed its state. The target becomes
 * the connection's, the keeper is asked; the guest gets 200, or a refusal by deny_write_connect. */
void conn_connect(struct edge *e, struct conn *c, const struct host *host, uint16_t port);

/* proxy.c: the HTTP engine. c->target is given when the target is fixed (caught, or inside a
 * CONNECT). proxy_on_bytes follows proxy_begin when bytes are there. proxy_free makes c->proxy
 * NULL. */
void proxy_begin(struct edge *e, struct conn *c);
void proxy_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void proxy_on_room(struct edge *e, struct conn *c);
/* fd is taken, -1 without one. */
void proxy_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd);
void proxy_on_fd(struct edge *e, struct conn *c, uint32_t events);
void proxy_on_timer(struct edge *e, struct conn *c);
void proxy_free(struct edge *e, struct conn *c);

/* open_ca.c: what is needed to end TLS. opener_new is the first use of OpenSSL in the process. */
int opener_new(const struct edge_config *config, struct opener **ret, struct err *err) MUST_CHECK;
void opener_free(struct opener *o);
/* EDGE_CA to the keeper. */
int opener_tell(const struct opener *o, int sock) MUST_CHECK;

/*
 * open.c: the guest's TLS. open_begin gets a connection whose c->in begins with a complete
 * ClientHello that check.c found right for c->target; from then on the wire's bytes come to
 * open_on_bytes and open_on_end and are pulled by open_pull, and engines see only what is inside.
 */
void open_begin(struct edge *e, struct conn *c, const struct hello *h);
void open_on_bytes(struct edge *e, struct conn *c, struct slice bytes);
void open_on_end(struct edge *e, struct conn *c);
void open_on_room(struct edge *e, struct conn *c); /* pulled from, or c->in was eaten from */
void open_on_timer(struct edge *e, struct conn *c);
ssize_t open_pull(struct conn *c, uint8_t *buf, size_t n);
void open_deafen(struct edge *e, struct conn *c); /* what the guest has sent is dropped */
void open_free(struct conn *c);

/*
 * h2.c: the HTTP/2 engine, only inside opened TLS (c->open, c->target given, c->sni). h2_begin
 * follows a handshake whose ALPN is h2; what was decrypted is in c->in then, and h2_on_bytes
 * follows when there is any. It eats by conn_eat, says by conn_say into c->out as far as conn_room
 * allows, and ends by conn_end or conn_reset. h2_free makes c->h2 NULL.
 */
void h2_begin(struct edge *e, struct conn *c);
void h2_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void h2_on_room(struct edge *e, struct conn *c);
void h2_on_timer(struct edge *e, struct conn *c);
void h2_free(struct edge *e, struct conn *c);

/* h2_stream.c, for conn.c: what the wire does for the other connections. A CONN_STREAM is as any
 * other one for the HTTP engine, and has its bytes and its end inside its connection. */
void h2_stream_consumed(struct edge *e, struct conn *c, size_t n);
void h2_stream_resume(struct edge *e, struct conn *c); /* c->out or c->out_end has changed */
void h2_stream_reset(struct edge *e, struct conn *c);
void h2_stream_over(struct edge *e, struct conn *c); /* makes c->stream NULL */
