/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - the operations on one connection of the guest.
 *
 * How      conn.c ends, resets and answers a connection for the part that has it, asks.c sends
 *          queries to the keeper, channel.c has the channels to origins. None depends on the data
 *          of the connection.
 * Trust    Bytes of the guest pass unread.
 * Owns     The table of connections, their sockets to egress, the channels to origins.
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
	struct ask_copy *ask;
};

void asks_put(struct edge *e, struct conn *c, const struct edge_ask *ask);
/* Cancels its ask, if not sent yet. */
void asks_forget(struct edge *e, struct conn *c);
void asks_flush(struct edge *e);
/* Removes an answered ask from the table; -EBADMSG if it does not exist. */
int asks_take(struct edge *e, uint32_t id, struct asked *ret) MUST_CHECK;

/* The memory budget. budget_used is counted by budget_alloc.c, which only sbx-edge has. */
extern size_t budget_used;
bool budget_is_over(const struct edge *e);
/* Reports to the keeper what was done to the connection. */
void budget_report(struct edge *e, struct conn *c, const char *what);

/* channel.c; it takes fd. */
void channel_add(struct edge *e, uint32_t id, int fd);
/* Nothing waits for this stream: origin is told. */
void channel_refuse(struct edge *e, uint32_t id, uint32_t stream);
struct channel *channel_find(const struct edge *e, uint32_t id);
void channel_on_event(struct edge *e, uint32_t id, uint32_t events);
/* The next connection with something to read or room to send, as events of epoll. NULL: none. */
struct conn *channel_next(struct edge *e, uint32_t *ret_events);
/* Sends what is there, and frees channels that are over. True: channel_next has something. */
bool channel_flush(struct edge *e);

/* conn.c: the table calls these. */
struct conn *conn_new(struct edge *e, enum conn_kind kind, uint32_t sid);
/* Frees everything except unanswered asks; frees the connection if there are none. */
void conn_over(struct edge *e, struct conn *c);
void conn_free_if_over(struct edge *e, struct conn *c);
/* Schedules the engine, or TLS: the connection has room again, or data to send. */
void conn_note_room(struct edge *e, struct conn *c);
/* Returns NULL if the connection was freed during a call into another part. */
struct conn *conn_find(struct edge *e, uint32_t idx, uint32_t gen);
/* Sends a fatal TLS alert with the reason, then ends the connection. */
#define CONN_ALERT_DENIED 49
#define CONN_ALERT_NAME 112
void conn_alert(struct edge *e, struct conn *c, uint8_t alert);
/* The whole queue as one or two contiguous runs. */
void conn_runs(const struct bufq *q, struct slice ret[2]);

/* conn.c: operations of the part that has the connection. After conn_reset and conn_end the caller
 * must not use it. */
/* Consumes n bytes of c->in. */
void conn_eat(struct edge *e, struct conn *c, size_t n);
static inline size_t conn_room(const struct conn *c)
{
	return bufq_space(&c->out);
}
/* Heap memory of a queue. */
static inline size_t conn_queue_size(const struct bufq *q)
{
	return q->ring ? q->size : 0;
}
/* Must fit conn_room. */
void conn_say(struct edge *e, struct conn *c, struct slice bytes);
/* Sends the rest of out to the guest, then ends. Further input is dropped. */
void conn_end(struct edge *e, struct conn *c);
void conn_reset(struct edge *e, struct conn *c);
/* One ask at a time; the answer is passed to the part that has the connection. */
void conn_ask(struct edge *e, struct conn *c, const struct edge_ask *ask);
/* Sends an ASK for a tunnel to c->target. */
void conn_ask_tunnel(struct edge *e, struct conn *c);
/* Reports to the keeper what edge blocked itself; the connection gets no answer. While one report
 * is unanswered, another of the same connection is dropped: one entry is enough. */
void conn_report_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind, const char *fault);
/* The same for a connection without a target: host is canonical, or "" if unknown. */
void conn_report_named_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind,
	const char *host, uint16_t port, const char *fault);
/* Takes fd as c->fd and watches it for input (edge-triggered). It may block: each call on it says
 * MSG_DONTWAIT. */
int conn_take_fd(struct edge *e, struct conn *c, int fd) MUST_CHECK;
/* The same with a stream of a channel. -EPIPE: there is none, or it is in use. */
int conn_take_stream(struct edge *e, struct conn *c, uint32_t channel, uint32_t stream) MUST_CHECK;
static inline bool conn_has_peer(const struct conn *c)
{
	return c->fd >= 0 || c->link;
}
/* To fd or stream, both texts as far as possible now: bytes, -EAGAIN, or another error. After
 * -EAGAIN conn_want_room; a stream reports room by itself. */
ssize_t conn_send(struct conn *c, struct slice a, struct slice b) MUST_CHECK;
/* Bytes, 0 at the end, -EAGAIN. */
ssize_t conn_recv(struct conn *c, uint8_t *buf, size_t n) MUST_CHECK;
/* The same, directly into c->out, which has room for some. */
ssize_t conn_recv_out(struct conn *c, size_t max) MUST_CHECK;
/* Ends our direction. */
void conn_shut(struct conn *c);
/* A send was short: reports EPOLLOUT from now on. The kernel checks the socket when EPOLLOUT is
 * registered, so room that was made before is reported too. */
void conn_want_room(struct edge *e, struct conn *c);
/* An EPOLLOUT had nothing to send: no more of them. */
void conn_ignore_room(struct edge *e, struct conn *c);
void conn_drop_fd(struct edge *e, struct conn *c);
void conn_set_timer(struct edge *e, struct conn *c, uint64_t ms); /* 0: none */
/* The HTTP engine has read CONNECT, consumed its head and freed its state. The target becomes the
 * connection's, the keeper is queried; the guest gets 200, or the text of deny_write_connect. */
void conn_connect(struct edge *e, struct conn *c, const struct host *host, uint16_t port);
