/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - the operations on one connection of the guest.
 *
 * How      conn.c ends, resets and answers a connection for the part that has it, asks.c sends
 *          queries to the keeper. Neither knows what the connection carries.
 * Trust    Bytes of the guest pass unread.
 * Owns     The table of connections and their sockets to egress.
 * Limits   NET_MAX_CONNS, one whose query is unanswered included even when the guest has reset it;
 *          NET_ASKS queries under way, the others wait; WIRE_NET_WINDOW in, CONN_OUT out.
 * Never    Sends data of the guest to egress before the keeper has allowed it.
 */
#pragma once

#include "src/edge/state/state.h"

/* asks.c: a query that is not sent yet. */
struct ask_wait {
	struct ask_wait *next, *prev;
	struct conn *conn;
	struct edge_ask ask;
};

void asks_put(struct edge *e, struct conn *c, const struct edge_ask *ask);
/* Its question, if not sent yet, is not sent any more. */
void asks_forget(struct edge *e, struct conn *c);
void asks_flush(struct edge *e);
/* Takes an answered question out of the table: -EBADMSG when there is none like it. */
int asks_take(struct edge *e, uint32_t id, struct asked *ret) MUST_CHECK;

/* The memory budget. budget_used is counted by budget_alloc.c, which only sbx-edge has. */
extern size_t budget_used;
bool budget_is_over(const struct edge *e);
/* Tells the keeper what was done to the connection. */
void budget_report(struct edge *e, struct conn *c, const char *what);

/* conn.c: the table calls these. */
struct conn *conn_new(struct edge *e, enum conn_kind kind, uint32_t sid);
/* Everything of it but its unanswered questions is over; gone when there are none. */
void conn_over(struct edge *e, struct conn *c);
void conn_free_if_over(struct edge *e, struct conn *c);
/* The engine, or TLS, is due for it: it has room again, or something to say into it. */
void conn_note_room(struct edge *e, struct conn *c);
/* The connection that a part has called away from may be gone: NULL then. */
struct conn *conn_find(struct edge *e, uint32_t idx, uint32_t gen);
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
/* What a queue has of the heap. */
static inline size_t conn_queue_size(const struct bufq *q)
{
	return q->ring ? q->size : 0;
}
/* Must fit conn_room. */
void conn_say(struct edge *e, struct conn *c, struct slice bytes);
/* The guest gets what is in out, then the end. What it sends is dropped. */
void conn_end(struct edge *e, struct conn *c);
void conn_reset(struct edge *e, struct conn *c);
/* One question at a time; the answer goes to the part that has the connection. */
void conn_ask(struct edge *e, struct conn *c, const struct edge_ask *ask);
/* Asks for a tunnel to c->target. */
void conn_ask_tunnel(struct edge *e, struct conn *c);
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
