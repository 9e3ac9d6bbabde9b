/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_image - the guest gets ready to become a template's memory image.
 *
 * How      Refused once the guest was told who it is, and until its network stands. What /setup
 *          would do alike in every sandbox of this user is done now: the agent's numbers, the files
 *          of the network. Then what is in memory only goes to the disk, and what memory holds of
 *          the disk is let go of; free memory is put together, so that it goes back to the host in
 *          large pieces (free page reporting). Last, the few blocks of the disk that every start
 *          needs are read again, by writing a file in each folder that /setup and /trust write in.
 * Trust    The host's request. What must differ between two machines of one image comes with
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
