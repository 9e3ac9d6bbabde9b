/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats - numbers about this VM, for the host to show.
 *
 * How      Reads /proc and statvfs on request.
 * Trust    The host only displays the numbers and does not trust them.
 */
#pragma once

#include "lib/os/ipc/keeper_chan.h"

void stats_read(struct keeper_stats *ret);
