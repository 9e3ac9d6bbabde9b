/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd - a guest that knows more files of its workspaces than virtiofsd may hold open is made to
 * forget.
 *
 * How      A lookup that takes virtiofsd into the last quarter of its descriptors waits
 *          (lib/vm/share/room.h). The guest is asked to let go of what it does not use (/forget),
 *          and each lookup that comes meanwhile waits CROWD_HOLD_MS at most: long enough that they
 *          cannot outrun the guest, short enough that those which the guest itself needs in order
 *          to forget get through. Where the files are in use and stay, the guest is asked again
 *          after CROWD_PAUSE_MS, and without a pause in the last eighth.
 * Trust    The guest is believed nothing: one that does not forget gets EMFILE for its own files.
 * Owns     The lookups that wait.
 * Limits   CROWD_MAX lookups at once; others go on. One question at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/os/loop/loop.h"

#define CROWD_MAX 8
#define CROWD_HOLD_MS 100
#define CROWD_PAUSE_MS 1000
#define CROWD_ASK_MS 10000

struct keeper;

struct crowd {
	uint64_t held[CROWD_MAX];
	size_t n;
	bool is_asking;
	bool was_asked;
	uint64_t asked_ms; /* when the last question ended */
	struct loop_timer timer;
};

void crowd_on_lookup(struct keeper *k);
void crowd_on_timer(struct keeper *k);
/* The share goes. */
void crowd_drop(struct keeper *k);
