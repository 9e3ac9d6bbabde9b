/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd - makes a guest drop cached workspace files before virtiofsd has too many open.
 *
 * How      A lookup that takes virtiofsd into the last quarter of its descriptors waits
 *          (lib/vm/share/room.h). /forget requests the guest to drop unused files. Each further
 *          lookup waits at most CROWD_HOLD_MS: long enough that lookups cannot outrun the guest,
 *          short enough for the lookups that the guest needs to forget. If the files are in use,
 *          the request is repeated after CROWD_PAUSE_MS, and without a pause in the last eighth.
 * Trust    The guest is untrusted: if it does not forget, it gets EMFILE for its own files.
 * Owns     The lookups that wait.
 * Limits   CROWD_MAX waiting lookups; others continue. One request at a time.
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
	uint64_t asked_ms; /* when the last request ended */
	struct loop_timer timer;
};

void crowd_on_lookup(struct keeper *k);
void crowd_on_timer(struct keeper *k);
/* The share is stopped. */
void crowd_drop(struct keeper *k);
