/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs - totals of the starts and ends of sandboxes, for src/sbxd/metrics.
 *
 * How      keepers.c counts a start when its keeper reports that the VM runs, keeper_end.c an end
 *          when the keeper has exited. Both begin with this sbxd: a sandbox of an earlier sbxd has
 *          no start, and its run begins with the adoption. VMs of the pool count when claimed.
 * Trust    The time of a start is what the keeper reports.
 * See      tests/api/test_metrics.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/base/clock.h"
#include "lib/os/ipc/keeper_chan.h"

enum runs_end { RUNS_REQUEST, RUNS_SUSPENDED, RUNS_OTHER, RUNS_N_ENDS };

struct runs {
	struct tally starts[KEEPER_N_HOWS], ends[RUNS_N_ENDS];
};
