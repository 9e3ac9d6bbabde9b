/*
 * stats - numbers about this VM, for the host to show.
 */
#pragma once

#include "lib/ipc/keeper_chan.h"

void stats_read(struct keeper_stats *ret);
