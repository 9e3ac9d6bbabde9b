/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange - one request of sbx-edge, or one connection for sbx-origin.
 *
 * How      exchange.c opens and ends an exchange. dial connects it, relay moves its data.
 * Trust    Internal.
 */
#pragma once

#include "lib/base/hash/ticket.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/policy/table.h"
#include "lib/wire/http/http1.h"
#include "lib/wire/socks/socks.h"
#include "limits.h"

enum exchange_state {
	EXCHANGE_FREE,
	EXCHANGE_HEAD,	    /* edge's request is awaited */
	EXCHANGE_RESOLVING, /* x->dial */
	EXCHANGE_DIALING,   /* x->dial */
	EXCHANGE_UPSTREAM,  /* the proxy was sent CONNECT: x->talk, or x->socks */
	EXCHANGE_TUNNEL,
	EXCHANGE_HTTP,	 /* x->talk */
	EXCHANGE_ENDING, /* sending the last data to edge, then waiting for its close */
	EXCHANGE_OVER,	 /* everything is closed; the report to the keeper is due */
};

struct dial {
	uint16_t port;
	bool is_checked; /* against the policy; not for a pin or the proxy */
	bool waits[2];	 /* for an answer: A, AAAA */
	bool none[2];	 /* the answer was empty */
	struct addr found[2][EGRESS_DIALS];
	unsigned n_found[2];
	struct addr addr[EGRESS_DIALS];
	unsigned n, next;
	int fd[EGRESS_DIALS];
	uint64_t until[EGRESS_DIALS], next_at, all_until;
	enum egress_outcome failure; /* most specific one; EGRESS_N_OUTCOMES: none */
	struct addr failed;
};

/* One HTTP request and its response; or a CONNECT to the proxy. */
struct talk {
	uint8_t *head; /* the payload that req points into */
	struct arena req_arena, resp_arena;
	struct http_req req;
	struct canon_reader frames;
	struct canon_flow up, down;
	struct http1 reader;
	bool is_deaf; /* the server reads no more of the request */
	bool is_said; /* the answer's head was sent to edge */
	bool is_done; /* the answer's end was sent to edge */
};

/* While the vault writes the login of the upstream proxy. */
struct login {
	uint8_t *rest; /* what follows it */
	size_t n;
	bool is_asked;
};

/* One direction of a tunnel. */
struct way {
	int pipe[2]; /* -1; held while bytes are in it */
	size_t n_held;
	bool ended; /* nothing more is read */
	bool shut;  /* and the other side was closed */
};

enum { WAY_UP, WAY_DOWN };

struct exchange {
	enum exchange_state state;
	enum egress_kind kind;
	uint32_t id; /* keeper's */
	uint32_t gen;
	int edge_fd, upstream_fd;
	int given_fd; /* passed to the keeper with RESULT */
	uint64_t give_until;
	struct host host;
	uint16_t port;
	struct ticket ticket;	    /* of the kind HTTP */
	bool is_free;		    /* the user named the address: it is not checked */
	bool is_proxied;	    /* by the proxy; also of the kind HTTP */
	uint16_t pin_port;	    /* of the pin that names the address; 0: none */
	bool is_own;		    /* upstream_fd is connected to this host */
	struct addr addr;	    /* peer of upstream_fd */
	struct canon_reader frames; /* until the request is complete */
	struct dial *dial;
	struct talk *talk;
	struct socks *socks;
	struct login *login;
	bool login_due; /* LOGIN is to be sent */
	struct out to_edge, to_upstream;
	struct way way[2];
	uint64_t n_bytes[2]; /* on the connection to the upstream */
	struct loop_timer timer;
	bool result_said, closed_due;
	bool edge_shut; /* nothing more is sent to edge */
	struct egress_result *result_due;
};
