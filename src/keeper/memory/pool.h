/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - a machine that is restored from its template's memory image and waits for a sandbox.
 *
 * How      Started by sbxd as `sbx-keeper --id ID --pool`: the same steps as a start from an image,
 *          without share, network, audit log and /setup. When the guest answers, how is POOL while
 *          the phase is still STARTING, and nothing more happens. CLAIM reads spec.json anew, and
 *          the rest of the start follows. What fails before the claim ends the keeper; what fails
 *          after it is a cold boot, as in warm.h. One that waits ends when sbxd goes away: the next
 *          sbxd makes its own.
 * Trust    sbxd, and a spec.json that has to be of the same machine. The guest has no way to the
 *          host yet: edge gets its network with the claim.
 * Owns     Nothing but the words below.
 * Limits   KEEPER_WARM_MS_* for the restore, and again from the claim to the running sandbox.
 * Never    Boots a machine for nobody; is claimed twice.
 * See      src/sbxd/keepers/pool.h, docs/warm.md
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keeper;

struct pool {
	bool is_ready; /* it can be claimed */
	bool is_network_due;
};

/* The restored guest answers. */
void pool_on_ready(struct keeper *k);
/* The few messages of sbxd that one who waits has an answer to. */
bool pool_knows(uint16_t type);
/* A CLAIM; DONE is sent. */
void pool_claim(struct keeper *k, int link, uint32_t msg);
/* The guest is at work: time for audit log and egress. */
void pool_on_setup_sent(struct keeper *k);
/* A connection of sbxd is gone. */
void pool_on_link_end(struct keeper *k);
/* It ends: the disks of one that nobody claimed are of no use. */
void pool_on_stop(struct keeper *k);
