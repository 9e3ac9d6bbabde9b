/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats - numbers about this VM, for the host to show.
 *
 * How      /proc and statvfs, read when asked for.
 * Trust    The host believes none of it: numbers to show.
 */
#pragma once

#include "lib/os/ipc/keeper_chan.h"

void stats_read(struct keeper_stats *ret);
