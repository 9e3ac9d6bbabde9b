/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload - notifies running keepers that the policy or the network settings changed.
 *
 * How      Every change has a number. A keeper has at most one RELOAD under way; later changes are
 *          sent with the next one. A keeper that sbxd found again after a restart is notified at
 *          its HELLO. The compiled policy (tables.h) goes first on the channel: POLICY, POLICY,
 *          RELOAD. Waiting connections are woken at each DONE.
 * Trust    As keepers.h: a keeper may not reply, or reject the change.
 * See      lib/os/ipc/keeper_chan.h, tests/api/test_policy.py
 */
#pragma once

#include "src/sbxd/state/state.h"

struct keeper;

/* Notifies the keeper of `id`, or with NULL all of them. Returns the number of the change. */
uint64_t reload_start(struct sbxd *d, const char *id);
/* The keeper has not replied to this change yet. */
bool reload_is_pending(const struct keeper *k, uint64_t number);
/* Returns the reason why the keeper has not applied the change; NULL if it has, or need not. */
const char *reload_why_not(const struct keeper *k, uint64_t number);
