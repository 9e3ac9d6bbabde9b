/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - the state of one running sandbox and the parts of the program that owns it.
 *
 * How      main.c has the loop, events.c the event table; each part below handles the events
 *          named for it. A sandbox goes STARTING -> RUNNING -> STOPPING -> STOPPED, and the
 *          process ends with it.
 * Trust    Sees short fixed messages of edge, egress, origins and the vault, QMP text (lib/vm/vmm)
 *          and answers of the guest to its own small questions (lib/wire/guestapi): all taken as
 *          hostile. Requests of sbxd: same user.
 * Owns     qemu, virtiofsd, edge, egress and origins (they die with it), the sandbox's lock,
 *          folders and audit log, the key of its CA.
 * Limits   KEEPER_MAX_LINKS, KEEPER_MAX_ASKS, EDGE_MAX_ASKS, EGRESS_MAX_OPEN, KEEPER_MAX_ORIGINS,
 *          the times below.
 * Never    Has a credential's value: that goes from the vault to an origin.
 * See      README, proto/PROTOCOL.ipc
 */
#pragma once

#include "src/keeper/life/life.h"

/* events.c: an empty keeper, and the handling of one event of its loop. */
void keeper_init(struct keeper *k);
void keeper_dispatch(struct keeper *k, const struct loop_event *ev);

/* requests.c: what sbxd asks for. */
extern const struct link_ops requests_ops;
