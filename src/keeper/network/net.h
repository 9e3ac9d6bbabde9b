/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - network requests of edge, and the exchanges that egress has open.
 *
 * How      See net.c and net_asks.c.
 * Trust    edge and egress may be compromised: ids and numbers are checked.
 * Limits   EDGE_MAX_ASKS, EGRESS_MAX_OPEN and the limits below.
 */
#pragma once

#include "src/keeper/credential/credential.h"
#include "src/keeper/worker/worker.h"

#define KEEPER_NET_BATCH 32    /* asks answered per turn of the loop */
#define KEEPER_ASK_BURST 20000 /* asks answered without delay; then ... */
#define KEEPER_ASK_RATE 2000   /* ... this many per second */
#define KEEPER_ASK_PAUSE_MS 10
/* The keeper's own log lines: a guest can cause some of them at will. */
#define KEEPER_LOG_LINES 1000
#define KEEPER_LOG_PER_MINUTE 30

/* Of the asks that wait for a person: so few that others of edge still pass. */
#define KEEPER_MAX_HELD 16

/* An ASK without a VERDICT. */
struct net_ask {
	uint32_t id;
	struct ask_copy *what;
	uint64_t held_ms; /* since when it waits for a person; 0: it does not */
	bool is_gone;	  /* its client has left */
};

/* An allowed ask that egress handles. */
struct exchange {
	struct ask_copy *what; /* NULL: free */
	uint32_t gen;
	bool has_result;
	bool is_socket; /* of the kind SOCKET, for an origin */
	bool has_login; /* egress has requested the login of the proxy */
	struct conn_order order;
};

/* The verdict to send to edge, after OPEN to egress. Each of the two may have to wait. */
struct net_pending {
	bool used;
	uint32_t ask;
	struct edge_verdict verdict;
	int edge_fd;
	int egress_fd; /* -1: OPEN was sent, or not needed */
	bool has_exchange;
	uint32_t exchange;
	struct egress_open open;
};

struct net {
	struct net_ask asks[EDGE_MAX_ASKS]; /* a ring */
	size_t first, n_asks;
	struct net_ask held[KEEPER_MAX_HELD];
	size_t n_held;
	struct exchange exchanges[EGRESS_MAX_OPEN];
	uint16_t free[EGRESS_MAX_OPEN]; /* a stack of slots */
	size_t n_free;
	struct net_pending pending;
	uint64_t last_ms;  /* when a request last began or an exchange ended; 0: never */
	uint64_t spent_us; /* when all answered asks would be done at KEEPER_ASK_RATE */
	struct loop_timer timer;
};

/* net.c: requests of edge. */
void net_init(struct keeper *k);
int net_on_ask(struct keeper *k, const struct ipc_msg *msg, struct err *err) MUST_CHECK;
int net_on_gone(struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* Takes the fd of a SOCKET's. */
int net_on_result(struct keeper *k, struct ipc_msg *msg) MUST_CHECK;
int net_on_closed(struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* login.c. text: "", or why the proxy was sent no login. */
int net_on_login(struct keeper *k, struct ipc_msg *msg) MUST_CHECK;
void net_on_logged(struct keeper *k, uint32_t exchange, const char *text);
/* Answers all asks that can be answered now. */
void net_run(struct keeper *k);
void net_on_edge_end(struct keeper *k);
void net_on_egress_end(struct keeper *k);
/* Whether an exchange is open. */
bool net_is_open(const struct net *n);
/* Orders a connection for an origin: egress's OPEN of the kind SOCKET. -EAGAIN: retried when egress
 * accepts messages (origins_on_room). */
int net_open_socket(
	struct keeper *k, const struct origin *o, uint32_t want, uint32_t *ret_exchange) MUST_CHECK;

/* net_asks.c: unanswered asks, and the exchanges that are open at egress. */
/* -EEXIST: the id is in use. -EOVERFLOW: more than EDGE_MAX_ASKS. */
int asks_add(struct net *n, uint32_t id, const struct edge_ask *ask) MUST_CHECK;
bool asks_is_empty(const struct net *n);
/* Whether the first ask needs egress, if it is allowed. */
bool asks_first_is_open(const struct net *n);
/* ret_ask: what belongs to it; its texts are in *ret. */
void asks_take(struct net *n, struct net_ask *ret_ask, struct edge_ask *ret);
/* An ask that was taken waits for a person. False: KEEPER_MAX_HELD do. */
bool asks_hold(struct net *n, uint32_t id, const struct edge_ask *ask, uint64_t since_ms);
/* Those that wait for a person are asks again. */
void asks_resume(struct net *n);
/* The same for one, if it waits; its client has left. */
void asks_drop(struct net *n, uint32_t id);
/* When the first of them has waited long enough; UINT64_MAX: none waits. */
uint64_t asks_held_until(const struct net *n);
void asks_clear(struct net *n);
void exchanges_init(struct net *n);
/* -EMFILE: EGRESS_MAX_OPEN are open. */
int exchanges_add(struct net *n, const struct edge_ask *ask, uint32_t *ret_id) MUST_CHECK;
struct exchange *exchanges_find(struct net *n, uint32_t id);
void exchanges_get_ask(const struct exchange *ex, struct edge_ask *ret);
void exchanges_remove(struct net *n, uint32_t id);
void exchanges_clear(struct net *n);
