/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - how the VM of a sandbox starts.
 *
 * How      The options of the keeper give the wanted plan. plan_select replaces it once, when the
 *          template and the accelerator are known. Later steps read keeper.plan. It changes to
 *          START_WARM when a sandbox claims the VM, and to START_COLD when the snapshot cannot be
 *          used or is used up.
 * Trust    Internal.
 */
#pragma once

#include <stdbool.h>

enum start_plan {
	START_COLD,   /* boots */
	START_WARM,   /* restores the snapshot of the template */
	START_RESUME, /* restores the snapshot of the suspended sandbox */
	START_POOL,   /* as START_WARM, then waits until a sandbox claims the VM */
	START_MAKE,   /* boots, and is saved as the snapshot of the template */
};

struct start_facts {
	enum start_plan wanted; /* START_COLD, START_WARM, START_POOL or START_MAKE */
	bool is_suspended, has_own_disks;
	const char *image_why; /* why the snapshot of the template cannot be used; NULL: it can */
};

struct start_choice {
	enum start_plan plan;
	const char *why; /* START_COLD: the reason. START_POOL: why it cannot start. Else NULL. */
};

struct start_choice plan_select(const struct start_facts *f);
/* True if the choice depends on image_why. */
bool plan_needs_image(struct start_facts f);
