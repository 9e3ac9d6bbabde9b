/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection - one connection of the guest on sbx.net.
 *
 * How      conn has the operations on a connection. An engine has it in the states CONN_HTTP and
 *          CONN_H2; conn reports to the engines and to TLS through struct conn_ops.
 * Trust    Internal.
 */
#pragma once

#include "lib/base/bufq.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/policy/host.h"
#include "lib/wire/dns/synth.h"
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/wire/tls/hello.h"
#include "lib/wire/tls/retry.h"
#include "limits.h"

struct proxy; /* the HTTP engine's state of one connection: proxy.c */
struct open;  /* the TLS layer's: open.c */
struct h2;    /* the HTTP/2 engine's: h2.c */
struct h2_stream;

/* CONN_STREAM: a stream of HTTP/2 inside another connection. */
enum conn_kind {
	CONN_FREE,
	CONN_PROXY,
	CONN_TCP,
	CONN_MAY,
	CONN_DNS,
	CONN_AGENT,
	CONN_LINK,
	CONN_STREAM
};

enum conn_state {
	CONN_SNIFFING, /* no target yet; waiting for the first data */
	CONN_ASKED,    /* the keeper decides about the tunnel */
	CONN_OPENING,  /* egress connects */
	CONN_CHECKING, /* open; the guest's first bytes are being checked */
	CONN_TUNNEL,   /* bytes pass */
	CONN_SHAKING,  /* TLS handshake of the guest with edge */
	CONN_HTTP,     /* the HTTP engine has it */
	CONN_H2,       /* the HTTP/2 engine has it */
	CONN_ENDING,   /* sends `out`, then ends */
};

struct conn_target {
	bool given;
	struct host host;
	uint16_t port;
};

struct ask_wait; /* an unsent ask: asks.c */

struct conn {
	enum conn_kind kind;
	enum conn_state state;
	enum edge_via via;
	enum edge_proto proto; /* as far as detected */
	uint32_t idx;	       /* its slot in the table */
	uint32_t sid, gen;     /* sid is 0 after the end of the stream */
	struct conn_target target;
	uint32_t synth_id; /* held while it is the source of the target */
	bool holds_synth;
	bool asking;	       /* an ASK is unanswered */
	bool reporting;	       /* an ASK with a fault is unanswered */
	struct ask_wait *wait; /* the ASK until it is sent */
	struct bufq in;	       /* unconsumed data of the guest; conn_eat returns the window */
	struct bufq out;       /* bytes for the guest */
	bool in_end;	       /* the guest has closed its direction */
	bool out_end;	       /* END_STREAM follows the last byte of out */
	int fd;		       /* to egress; -1 */
	struct loop_timer timer;
	struct hello_reader *hello; /* while TLS is being checked */
	/* CONN_TUNNEL, until it is clear that no second ClientHello follows or it was checked. The
	 * first n_may bytes of `in` may be sent to the server, and the reader has seen the first
	 * n_seen. */
	struct retry *retry;
	size_t n_may, n_seen;
	struct proxy *proxy;	  /* CONN_HTTP */
	struct h2 *h2;		  /* CONN_H2 */
	struct h2_stream *stream; /* CONN_STREAM: its slot in the other connection */
	/* If TLS is intercepted: `in` and `out` are then the plain data. */
	struct open *open;
	const struct host *sni; /* name in its ClientHello; NULL: none */
	bool opened;		/* the keeper decided to intercept TLS to the target */
	bool has_ask_id;
	bool ended_told, ended_due; /* asks_ended; due: the keeper does not know yet */
	uint32_t ask_id;	    /* of the last one that was sent */
	char *own_wants;	    /* wants, if they are this connection's own */
	const char *wants;	    /* names of headers for each ASK inside; NULL: none */
	uint32_t wants_id;
	bool in_cut;   /* in_end without the guest's close_notify */
	bool out_cut;  /* out was truncated: no clean end */
	bool fd_waits; /* EPOLLOUT is registered: a send was short, or a later one may be */
	bool fd_eof;
	struct canon_reader *reader; /* CONN_OPENING: of egress' answer */
	bool over_udp;		     /* CONN_DNS: limits the size of the answer */
	bool answered;		     /* the guest's CONNECT got its 200 */
	bool server_spoke;	     /* the guest got data of the server */
	uint64_t n_pulled;	     /* by the guest, and its value when the timer was set */
	uint64_t n_pulled_then;
	struct conn *next_room; /* in the list of connections with room */
	bool in_room;
};

/* Whether its data is inside intercepted TLS. */
static inline bool conn_is_opened(const struct conn *c)
{
	return c->open || c->kind == CONN_STREAM;
}
