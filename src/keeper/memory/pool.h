/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - a qemu that has the disks of a template's snapshot, no guest yet, and waits for a sandbox.
 *
 * How      sbxd starts `sbx-keeper --id ID --pool`: the first steps of a warm start. The files of
 *          the snapshot are opened, the memory of the VM is created empty, and qemu waits for
 *          `migrate-incoming`. When qemu responds, state.how is POOL, the phase is still STARTING,
 *          and the VM waits. CLAIM reads spec.json again and does the rest of a warm start: fills
 *          the memory and verifies it, starts the other processes, restores. A failure before the
 *          claim stops the keeper; a failure after it is a cold start, as in warm.h. A waiting VM
 *          stops when sbxd exits: the next sbxd starts its own.
 * Trust    Requests of sbxd. spec.json must describe the same VM. No guest runs before the claim.
 * Limits   KEEPER_WARM_MS_* until qemu responds, and again from the claim to the running sandbox.
 * Never    Runs a guest without a sandbox; accepts two claims.
 * See      src/sbxd/keepers/pool.h, docs/warm.md
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keeper;

struct pool {
	bool is_ready; /* can be claimed */
};

/* qemu waits for a snapshot. */
void pool_on_ready(struct keeper *k);
/* Messages of sbxd that a waiting VM accepts. */
bool pool_knows(uint16_t type);
/* Handles CLAIM and sends DONE. */
void pool_claim(struct keeper *k, int link, uint32_t msg);
/* A connection of sbxd was closed. */
void pool_on_link_end(struct keeper *k);
/* Removes the disks of a VM that was not claimed. */
void pool_on_stop(struct keeper *k);
