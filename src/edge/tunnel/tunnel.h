/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunnel - connections that are not HTTP: redirected ones, tunnels, DNS and links.
 *
 * How      caught.c finds the target of a redirected connection. tunnel.c opens a tunnel through
 *          egress and forwards its data. Before data of the guest is forwarded, check.c compares it
 *          with the target: TLS must name the target, HTTP goes to the HTTP engine, other data is
 *          allowed only on ports other than 80 and 443. A second ClientHello (HelloRetryRequest)
 *          must name the target too. name.c answers DNS. link.c
 *          passes on a URL that the user is asked to open.
 * Trust    Untrusted input of the guest.
 * Limits   CONN_*_MS for each wait.
 * Never    Sends data of the guest to egress before the check of the name.
 * See      proto/PROTOCOL.net
 */
#pragma once

#include "src/edge/conn/conn.h"

/* caught.c: /tcp/ADDR/PORT, and /may/ADDR/PORT, the question before it */
int caught_may(struct edge *e, struct conn *c, const char *addr_and_port) MUST_CHECK;
void caught_on_may(struct edge *e, struct conn *c, const struct edge_verdict *verdict);
int caught_open(struct edge *e, struct conn *c, const char *addr_and_port) MUST_CHECK;
void caught_on_bytes(struct edge *e, struct conn *c); /* more in c->in, or c->in_end */
void caught_on_timer(struct edge *e, struct conn *c);

/* check.c: the first bytes of an open tunnel */
/* `bytes` are new at the end of c->in; or c->in_end. */
void check_on_bytes(struct edge *e, struct conn *c, struct slice bytes);
void check_on_timer(struct edge *e, struct conn *c);

/* tunnel.c */
void tunnel_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd);
void tunnel_on_fd(struct edge *e, struct conn *c, uint32_t events);
void tunnel_on_timer(struct edge *e, struct conn *c);
void tunnel_begin(struct edge *e, struct conn *c); /* the check is passed: c->in continues */
void tunnel_on_bytes(struct edge *e, struct conn *c, struct slice bytes);
void tunnel_on_end(struct edge *e, struct conn *c);
void tunnel_on_room(struct edge *e, struct conn *c); /* after check_on_server */
ssize_t tunnel_pull(struct edge *e, struct conn *c, uint8_t *buf, size_t n);
/* Sends the gathered data. */
void tunnel_flush(struct edge *e);

/* name.c: DNS */
void name_on_end(struct edge *e, struct conn *c); /* the query is complete */
void name_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict);

/* link.c: a URL for the user's browser */
void link_on_end(struct edge *e, struct conn *c); /* the URL is complete */
void link_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict);
