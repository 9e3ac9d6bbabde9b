/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - the state of one running sandbox and the parts of the program that owns it.
 *
 * How      main.c has the loop, events.c the event table; each part below handles the events named
 *          for it. A sandbox changes from STARTING to RUNNING, STOPPING and STOPPED; then the
 *          process exits.
 * Trust    Input: short fixed messages of edge, egress, origins and the vault, QMP text
 *          (lib/vm/vmm), answers of the guest to the keeper's own requests (lib/wire/guestapi). All
 *          of it is untrusted. Requests of sbxd: same user.
 * Owns     QEMU, virtiofsd, edge, egress and origins (they exit with the keeper), the sandbox's
 *          lock, directories and audit log, the key of its CA.
 * Limits   KEEPER_MAX_LINKS, KEEPER_MAX_ASKS, EDGE_MAX_ASKS, EGRESS_MAX_OPEN, KEEPER_MAX_ORIGINS,
 *          the times below.
 * Never    Handles the value of a credential: the vault sends it directly to an origin.
 * See      README, proto/PROTOCOL.ipc
 */
#pragma once

#include "src/keeper/life/life.h"

/* events.c: an empty keeper, and the dispatch of one event. */
void keeper_init(struct keeper *k);
void keeper_dispatch(struct keeper *k, const struct loop_event *ev);

/* requests.c: requests of sbxd. */
extern const struct link_ops requests_ops;
