/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - forwards the data of a connected exchange.
 *
 * How      tunnel.c splices bytes in both directions, request.c forwards one HTTP request and its
 *          response, proxy.c sends CONNECT to the upstream proxy, socks_proxy.c is SOCKS 5,
 *          login.c has the vault write the login.
 * Trust    Frames of edge and data of servers. Handles no secrets.
 * Limits   EGRESS_PIPES, OUT_MAX per direction, EGRESS_IDLE_MS, EGRESS_UPSTREAM_MS.
 */
#pragma once

#include "src/egress/state/state.h"

/* tunnel.c */
/* "200", followed by unmodified data. */
void tunnel_put_head(struct exchange *x);
/* From here on data is relayed, after the contents of to_edge and to_upstream. */
void tunnel_run(struct egress *e, struct exchange *x);
void tunnel_pump(struct egress *e, struct exchange *x);
void tunnel_on_edge(struct egress *e, struct exchange *x, uint32_t events);
void tunnel_drop(struct egress *e, struct exchange *x);

/* request.c */
void request_begin(struct egress *e, struct exchange *x);
void request_pump(struct egress *e, struct exchange *x);
/* The login was sent. */
void request_go_on(struct egress *e, struct exchange *x);

/* proxy.c */
void proxy_refuse_login(struct egress *e, struct exchange *x, unsigned status);
void proxy_begin(struct egress *e, struct exchange *x);
void proxy_pump(struct egress *e, struct exchange *x);
/* Fails the exchange: "upstream proxy NAME: " and the reason. */
void proxy_refuse(struct egress *e, struct exchange *x, enum egress_outcome outcome,
	const char *fmt, ...) PRINTF_LIKE(4, 5);

/* login.c */
/* After what is in to_upstream comes the login, then `rest`. */
void login_begin(struct egress *e, struct exchange *x, struct slice rest);
/* The head in to_upstream gets a Proxy-Authorization after its first line. */
bool login_split(struct egress *e, struct exchange *x) MUST_CHECK;
void login_pump(struct egress *e, struct exchange *x);
/* why: "", or why the vault wrote none. */
void login_on_logged(struct egress *e, struct exchange *x, const char *why);
void login_drop(struct exchange *x);

/* socks_proxy.c */
void socks_begin(struct egress *e, struct exchange *x);
void socks_pump(struct egress *e, struct exchange *x);
