/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_image - prepares the guest for a snapshot of its template.
 *
 * How      Refused after /setup, and until the network is ready. Steps of /setup that are the same
 *          in every sandbox of this user are done now: the agent's ids, the files of the network.
 *          Then dirty memory is written to disk, caches are dropped, and free memory is compacted,
 *          so that it returns to the host in large pieces (free page reporting). Finally, the few
 *          disk blocks that every start needs are read again, by writing a file in each directory
 *          that /setup and /trust write to.
 * Trust    The host's request. Data that must differ between two VMs of one snapshot comes with
 *          /setup.
 * Never    Reads the kernel's boot id or random bytes: the first reader fixes the former for all
 *          clones.
 */
#pragma once

#include "src/guest/base/base.h"
#include "src/guest/net/net.h"
#include "lib/wire/guestapi/guest_ctl.h"

int park_image(const struct facts *f, const struct netproc *net, const struct guest_parking *p,
	struct err *err) MUST_CHECK;
