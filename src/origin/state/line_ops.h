/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_ops - a connection to the server, and the table of the protocol on it.
 *
 * How      line.c owns the connections; line_h1.c and line_h2.c have one table each. The other
 *          parts use a connection through its table only.
 * Trust    Internal.
 */
#pragma once

#include <openssl/ssl.h>
#include "lib/os/ipc/origin_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/http/http1.h"

struct origin;
struct exchange;
struct line;

enum line_kind { LINE_NONE, LINE_H1, LINE_H2 };

enum line_state {
	LINE_FREE,
	LINE_WANTED,	/* WANT was sent */
	LINE_HANDSHAKE, /* TLS, and the certificate */
	LINE_READY,	/* verified */
};

/*
 * Operations of a protocol on a line. on_event and resume may end exchanges through struct
 * exchange_ops; leave and these two may drop the line by line_drop. start, body and end do neither.
 * Plain data is read and written with line_recv and line_send.
 */
struct line_ops {
	enum line_kind kind;
	const char *alpn;
	/* The line is READY: creates l->proto. False: the caller drops the line. */
	bool (*begin)(struct origin *o, struct line *l);
	void (*done)(struct origin *o, struct line *l); /* frees l->proto */
	/* Whether the line can take one more exchange now. */
	bool (*can_take)(const struct line *l);
	/* Sends the head of x->talk->req, which may contain the value. x->line is l and counted in
	 * l->n_exchanges. Returns 0, or negative if nothing was sent. */
	int (*start)(struct origin *o, struct line *l, struct exchange *x);
	/* How many bytes of content it accepts from x now; the rest waits in edge's socket. Calls
	 * on_room when that grows. */
	size_t (*room)(const struct line *l, const struct exchange *x);
	/* Data of edge: at most OUT_READ bytes if room() was as much; canon_flow has checked its
	 * length against the head. */
	int (*body)(struct origin *o, struct exchange *x, struct slice bytes);
	int (*end)(struct origin *o, struct exchange *x, const struct http_headers *trailers);
	/* The exchange leaves: answered, or cancelled by origin or edge; possibly not started. */
	void (*leave)(struct origin *o, struct line *l, struct exchange *x);
	/* x has room for more of its answer again (answer_has_room), and the line had set
	 * x->is_stopped. */
	void (*resume)(struct origin *o, struct line *l, struct exchange *x);
	/* Bytes may be read or written. */
	void (*on_event)(struct origin *o, struct line *l);
};

struct line {
	enum line_state state;
	uint32_t id; /* of the WANT */
	uint32_t gen;
	int fd;
	SSL *ssl;
	bool h1_only; /* for websockets: no other protocol is offered */
	const struct line_ops *ops;
	void *proto; /* of ops */
	unsigned n_exchanges;
	uint64_t n_served; /* exchanges that were answered on it */
	bool is_closing;   /* takes no more exchanges */
	bool is_hung_up;   /* an event reported the end of the server's data */
	char addr[ORIGIN_MAX_ADDR];
	uint8_t cert[ORIGIN_CERT_HASH];
	struct loop_timer timer;
};
