/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress - the files of sbx-egress above its parts.
 *
 * How      main.c starts, seals and has the switch of events. control.c handles messages of the
 *          keeper. Each OPEN is a struct exchange (exchange.c): its request is read from edge,
 *          compared with the allowed target, decided again, then dialed and relayed. A SOCKET has
 *          no edge: its connection is passed to the keeper. selftest.c is --jail-selftest.
 * Trust    Frames of edge, responses of resolvers, data of servers. Handles no secrets.
 * Owns     The sockets, fd CONTROL_FD, the policy.
 * Limits   EGRESS_MAX_OPEN exchanges; the EGRESS_*_MS of limits.h; EGRESS_PIPES; OUT_MAX a
 *          direction.
 * Never    Resolves or connects before the policy has allowed the target.
 * See      README, lib/os/ipc/egress_chan.h, proto/PROTOCOL.canon
 */
#pragma once

#include "src/egress/dial/dial.h"
#include "src/egress/relay/relay.h"

/* control.c */
extern const struct control_ops egress_control;
/* Sends due reports of an exchange, or later if the keeper does not read. */
void control_report(struct egress *e, struct exchange *x);
/* Ends exchanges that the current policy denies. */
void control_recheck(struct egress *e);
/* Tries again to pass connections on. */
void control_again(struct egress *e);

/* exchange.c */
extern const struct exchange_ops exchange_ops;
/* Takes fd; -1 for the kind SOCKET. */
void exchange_open(struct egress *e, uint32_t id, const struct egress_open *open, int fd);
void exchange_on_edge(struct egress *e, struct exchange *x, uint32_t events);
void exchange_on_upstream(struct egress *e, struct exchange *x, uint32_t events);
void exchange_on_timer(struct egress *e, struct exchange *x);
/* Ends the exchange if the current policy denies it. */
void exchange_recheck(struct egress *e, struct exchange *x);

/* selftest.c */
int egress_selftest(void);
