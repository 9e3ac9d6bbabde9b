/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial - connects to an allowed name.
 *
 * How      dial_begin selects the addresses (pin, upstream proxy or those of the name), resolve.c
 *          resolves names with c-ares, each address is checked, one is connected and checked again.
 * Trust    Responses of resolvers. The policy has allowed the names.
 * Owns     x->dial until x->upstream_fd is connected.
 * Limits   EGRESS_DIALS addresses, EGRESS_RESOLVE_MS, EGRESS_DIAL_MS, EGRESS_DIAL_ALL_MS.
 * Never    Resolves twice for one exchange.
 */
#pragma once

#include "src/egress/state/state.h"

/* dial.c */
void dial_begin(struct egress *e, struct exchange *x);
void dial_on_event(struct egress *e, struct loop_event ev);
void dial_on_timer(struct egress *e, struct exchange *x);
void dial_free(struct egress *e, struct exchange *x);
/* Whether the current or next address of the exchange is no longer allowed: *ret is the address. */
bool dial_is_over(const struct egress *e, const struct exchange *x, struct addr *ret);

/* resolve.c: one channel of c-ares. */
int resolve_init(struct egress *e, struct err *err) MUST_CHECK;
/* Sets the servers from the text of a resolv.conf; pending queries fail. */
void resolve_set_servers(struct egress *e, const char *text);
void resolve_on_event(struct egress *e, const struct loop_event *ev);
void resolve_on_timer(struct egress *e);
