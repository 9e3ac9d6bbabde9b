/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup - configures the VM as this sandbox: name, clock, ids, entropy, workspaces.
 *
 * How      Requested once after each start and again when edge reconnects. Each item is compared
 *          with the current state and changed only if it differs.
 * Trust    The host's request.
 */
#pragma once

#include "mounts.h"
#include "src/guest/base/base.h"

int setup_apply(struct facts *f, struct mounts *m, const struct guest_setup *setup,
	struct err *err) MUST_CHECK;
/* Stores the data of /trust. */
void facts_trust(struct facts *f, const struct guest_trust *trust);
/* The part of it that is the same in all sandboxes of one user of the host. */
int setup_user(uid_t uid, gid_t gid, struct err *err) MUST_CHECK;
/* Credited as entropy: only the host could know the bytes. */
void setup_entropy(const uint8_t bytes[GUEST_ENTROPY]);
int setup_clock(uint64_t wall_ms, struct err *err) MUST_CHECK;
