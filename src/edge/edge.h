/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge - the files of sbx-edge above its parts.
 *
 * How      main.c starts, seals and dispatches events, control.c handles messages of the keeper.
 *          net.c owns the channel sbx.net and passes each event of a connection to its part. The
 *          target is an address (redirected connection) or a name (proxy request). sbx-edge queries
 *          the keeper about the target, and egress gets a socket if it is allowed. /proxy belongs
 *          to the HTTP engine (CONNECT leaves it by conn_connect), /tcp is sniffed for
 *          CONN_SNIFF_MS, /may only queries the keeper. budget.c closes connections above the
 *          memory budget. selftest.c is --jail-selftest.
 * Trust    Parses untrusted input of the guest. Holds no credentials, only the key of the sandbox
 *          CA.
 * Owns     fd CONTROL_FD.
 * Limits   EDGE_BUDGET for all memory; each part has its own limits.
 * See      README, lib/os/ipc/edge_chan.h, proto/PROTOCOL.wire, proto/PROTOCOL.net
 */
#pragma once

#include "src/edge/tls/tls.h"
#include "src/edge/tunnel/tunnel.h"
#include "src/edge/wire/wire.h"

/* control.c */
extern const struct control_ops edge_control;
/* Sends due reports of a bridge, or later if the keeper does not read; frees it at the end. */
void control_report(struct edge *e, struct bridge *b);
/* All bridges are in use. */
void control_refuse(struct edge *e, uint32_t id);
void control_ready(struct edge *e);
/* The guest or the wire is lost: informs the keeper and stops the loop. */
void control_lost(struct edge *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Sends an ASK. Returns 0, or -EAGAIN if the keeper does not read now (asks_flush is called when it
 * does again) or has exited. */
int control_send_ask(struct edge *e, uint32_t id, const struct edge_ask *ask) MUST_CHECK;
void control_send_gone(struct edge *e, uint32_t id);

/* net.c: called by the rest of edge. */
void net_start(struct edge *e, int fd);
void net_on_event(struct edge *e, uint32_t events);
void net_flush(struct edge *e);
void net_on_conn_event(struct edge *e, struct loop_event ev); /* a socket to egress */
/* Takes fd: a channel to an sbx-origin. */
void net_on_channel(struct edge *e, uint32_t id, int fd);
void net_on_channel_event(struct edge *e, const struct loop_event *ev);
void net_on_timer(struct edge *e, struct loop_key key);
/* Takes fd. Returns -EBADMSG if the verdict answers no ask. */
int net_on_verdict(
	struct edge *e, uint32_t id, const struct edge_verdict *verdict, int fd) MUST_CHECK;

/* budget.c: closes the largest connections while the budget is exceeded. Called before a step that
 * can grow one, never within a step: any connection may be freed. */
void budget_keep(struct edge *e);

/* selftest.c */
int edge_selftest(void);
