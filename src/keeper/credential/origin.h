/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - the keeper's data about one sbx-origin process.
 *
 * How      origin_link.c fills a slot of struct origins when edge requests a host with a
 *          credential. origin_conn.c, origin_need.c and origin_token.c each use their own fields.
 * Trust    Numbers and texts of an sbx-origin that may be compromised by a server.
 * Limits   KEEPER_MAX_ORIGINS, KEEPER_ORIGIN_*, KEEPER_MAX_GIVEN, KEEPER_MAX_BLAMED.
 */
#pragma once

#include "creds.h"
#include "src/keeper/worker/worker.h"
#include "lib/rules/policy/addr.h"

#define KEEPER_MAX_ORIGINS 32
#define KEEPER_ORIGIN_CONNS 64 /* remembered connections of one origin */
#define KEEPER_ORIGIN_LOOK_MS 1000
#define KEEPER_ORIGIN_START_MS clock_limit_ms(5000) /* from its start to its HELLO */
#define KEEPER_ORIGIN_IDLE_MS 60000
#define KEEPER_ORIGIN_VIOLATIONS 3
#define KEEPER_ORIGIN_CRASHES 10 /* unexpected exits, per host and run */
#define KEEPER_MAX_BLAMED 64	 /* hosts whose origins violated the protocol */
#define KEEPER_ORIGIN_TOKENS 32	 /* of one origin, unanswered */
#define KEEPER_MAX_GIVEN 64	 /* values last released to one origin */

struct origin;

/* The function of a channel that sends POLICY. */
typedef int ask_policy_fn(int sock, uint32_t id, uint8_t part, int table);

struct origin_exchange {
	struct ask_copy *what; /* NULL: free */
	uint32_t gen;
	bool has_result;
	bool is_due; /* OPEN must be sent */
	int fd;	     /* of a clerk: origin's end, until OPEN is sent; -1 */
	struct ticket ticket;
};

enum origin_conn_state { CONN_FREE, CONN_WANTED, CONN_ASKED, CONN_DUE, CONN_GIVEN };

struct origin_conn {
	enum origin_conn_state state;
	uint32_t id;	   /* origin's */
	uint32_t exchange; /* CONN_ASKED: egress's */
	struct addr addr;  /* CONN_DUE and later: from getpeername */
	bool is_own;	   /* same as getsockname: the address is this host */
	uint16_t port;
	int fd; /* CONN_DUE */
	struct egress_result result;
};

struct origin_asked_value {
	bool used;
	bool is_due; /* the answer waits for room */
	uint32_t id;
	uint64_t serial; /* that the decision was about */
	int fd;		 /* origin's end of the stream */
	struct origin_value value;
};

/* STORED, to be sent when origin reads. */
struct origin_kept {
	uint32_t id;
	struct origin_stored stored;
};

/* One sbx-origin process. */
struct origin {
	struct worker worker; /* the first member */
	char host[ORIGIN_MAX_HOST];
	uint16_t port;
	struct binding binding; /* copy of the binding it was started with */
	uint64_t used_ms;
	uint32_t channel;		   /* its number at edge; 0: none */
	int edge_end;			   /* of the channel, until edge has it */
	int own_end;			   /* until origin has it */
	bool had_channel;		   /* origin has had one */
	struct origin_exchange *exchanges; /* ORIGIN_MAX_OPEN */
	size_t n_exchanges;
	struct origin_conn *conns; /* KEEPER_ORIGIN_CONNS */
	size_t next_conn;
	struct origin_asked_value values[ORIGIN_N_WHICH];
	uint64_t given[KEEPER_MAX_GIVEN]; /* serials, a ring */
	size_t n_given;
	bool is_renew_due;  /* RENEW must be sent */
	bool is_policy_due; /* POLICY must be sent */
	bool has_pack;	    /* PACK was sent with a text */
	uint32_t n_policies;
	struct origin_kept kept[KEEPER_ORIGIN_TOKENS];
	size_t n_kept;
};

/* A host whose origins violated the protocol or exited unexpectedly. */
struct blamed {
	char host[ORIGIN_MAX_HOST];
	uint16_t port;
	unsigned n_violations, n_crashes;
};

struct origins {
	struct origin list[KEEPER_MAX_ORIGINS];
	struct blamed blamed[KEEPER_MAX_BLAMED];
	size_t n_blamed;
	uint32_t n_channels; /* so far */
	int roots;	     /* a sealed memfd; -1: the certificates cannot be read */
	struct loop_timer timer;
	/* Orders a connection at egress. -EAGAIN: retry when egress accepts messages. */
	int (*open_socket)(
		struct keeper *k, const struct origin *o, uint32_t want, uint32_t *ret_exchange);
	/* Sends both tables of the policy to a worker. */
	int (*send_tables)(struct keeper *k, int sock, uint32_t id, ask_policy_fn *ask);
	/* Starts the program with its end of the channel; tests replace it. */
	int (*spawn)(struct keeper *k, int sock, struct jail_child *ret, struct err *err);
};
