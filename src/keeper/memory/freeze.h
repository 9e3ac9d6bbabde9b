/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freeze - what the disks hold now becomes layers that are never written again; the machine goes
 * on.
 *
 * How      New empty overlays are made; the guest makes its file systems whole and holds still
 *          (/park FREEZE); each disk is told to write to its new overlay from now on
 *          (vmm_snapshot_disk); the old top becomes root.N.qcow2 and the new one root.qcow2; the
 *          guest goes on (/wake); FROZEN is said. Nothing is written to a disk between the first
 *          and the last of these, so that whoever is killed in between leaves disks with all that
 *          was in them.
 * Trust    The guest may lie about being still: then the layers are as a power failure would leave
 *          them, which its file systems survive.
 * Owns     Nothing but the names.
 * Limits   KEEPER_FREEZE_MS for the guest; it goes on by itself when nobody wakes it. One at a
 *          time. DISKS_MAX_OWN layers, TEMPLATE_MAX_LAYERS with those of the template.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/clock.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/vm/template/template.h"

#define KEEPER_FREEZE_MS clock_limit_ms(40000) /* a sync of everything that was written */
#define KEEPER_THAW_MS clock_limit_ms(5000)

struct keeper;

struct freeze {
	enum { FREEZE_IDLE, FREEZE_PARKING, FREEZE_SNAPSHOT, FREEZE_WAKING } state;
	enum template_disk disk;
	int link;
	uint32_t link_gen, msg;
	int code;
	char text[256];
};

/* Answers with FROZEN, at once when it is not possible. */
void freeze_begin(struct keeper *k, int link, uint32_t msg);
/* VMM_EV_SNAPSHOT, or why not. */
void freeze_on_snapshot(struct keeper *k, bool ok, const char *text);
