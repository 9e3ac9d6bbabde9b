/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merges - merges layers of stopped sandboxes that no checkpoint needs.
 *
 * How      merges_want notes a sandbox that has stopped. A little later sbxd starts `sbx-keeper
 *          --merge` for it, with the lowest priority and one at a time. merges_stop kills that
 *          process before the disks of its sandbox are used: the layers are complete at each
 *          moment, and the next stop merges the rest. The top is not touched, so a suspended
 *          sandbox stays suspended. A running sandbox keeps its layers until it stops.
 * Trust    The list of checkpoints, as checkpoints.h. Only the program's exit status is used.
 * Owns     One process, killed when sbxd exits.
 * Limits   MERGES_MAX sandboxes wait; MERGES_MS for one.
 * See      src/keeper/machine/merge.h, tests/api/test_checkpoint.py
 */
#pragma once

#include "checkpoints.h"
#include "src/sbxd/hands/hands.h"
#include "lib/base/clock.h"

#define MERGES_MAX 64
#define MERGES_DELAY_MS 3000 /* a restart needs the disks at once */
#define MERGES_MS clock_limit_ms(300000)

struct merges {
	char ids[MERGES_MAX][SPEC_ID_LEN + 1]; /* waiting */
	size_t n;
	char id[SPEC_ID_LEN + 1]; /* of the process */
	struct hands_child child; /* pid 0: none is running */
	struct loop_timer timer;
};

void merges_init(struct merges *m);
void merges_done(struct sbxd *d);
/* The sandbox has stopped. */
void merges_want(struct sbxd *d, const char *id);
/* Its disks are about to be used. Waits until the process has exited. */
void merges_stop(struct sbxd *d, const char *id);
void merges_on_timer(struct sbxd *d);
void merges_on_exit(struct sbxd *d);
/* The layers that may be merged with the next one. */
void merges_find(const char *dir, const struct checkpoints *list, enum template_disk disk,
	struct layers *ret);
