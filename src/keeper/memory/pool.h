/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - a VM that is restored from the snapshot of its template and waits for a sandbox.
 *
 * How      sbxd starts `sbx-keeper --id ID --pool`: the same steps as a warm start, without share,
 *          network, audit log and /setup. When the guest answers, state.how is POOL, the phase is
 *          still STARTING, and the VM waits. CLAIM reads spec.json again and does the rest of the
 *          start. A failure before the claim stops the keeper; a failure after it is a cold start,
 *          as in warm.h. A waiting VM stops when sbxd exits: the next sbxd starts its own.
 * Trust    Requests of sbxd. spec.json must describe the same VM. The guest cannot reach the host
 *          yet: edge gets its network with the claim.
 * Limits   KEEPER_WARM_MS_* for the restore, and again from the claim to the running sandbox.
 * Never    Boots a VM without a sandbox; accepts two claims.
 * See      src/sbxd/keepers/pool.h, docs/warm.md
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keeper;

struct pool {
	bool is_ready; /* can be claimed */
	bool is_network_due;
};

/* The restored guest answers. */
void pool_on_ready(struct keeper *k);
/* Messages of sbxd that a waiting VM accepts. */
bool pool_knows(uint16_t type);
/* Handles CLAIM and sends DONE. */
void pool_claim(struct keeper *k, int link, uint32_t msg);
/* Starts audit log and egress while the guest works on /setup. */
void pool_on_setup_sent(struct keeper *k);
/* A connection of sbxd was closed. */
void pool_on_link_end(struct keeper *k);
/* Removes the disks of a VM that was not claimed. */
void pool_on_stop(struct keeper *k);
