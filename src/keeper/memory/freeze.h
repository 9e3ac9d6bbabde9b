/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freeze - turns the disks of a running VM into read-only layers.
 *
 * How      freeze_begin creates empty overlays. The guest syncs and freezes its file systems (/park
 *          FREEZE). The old top of each disk becomes root.N.qcow2 and the new one root.qcow2, then
 *          QEMU switches to it (vmm_snapshot_disk). The guest continues (/wake), and FROZEN is
 *          sent. No disk is written meanwhile, so a killed process leaves complete disks. With a
 *          label the layers are a checkpoint: its audit record is written before the guest
 *          continues, so each later record is of the time after it. With memory, suspend.c parks
 *          the guest, requests the layers while the VM is paused, saves the VM and wakes the guest.
 * Trust    The guest may report a freeze falsely: the layers are as after a power failure then,
 *          which its file systems survive.
 * Limits   KEEPER_FREEZE_MS for the guest, which continues automatically if it is not woken. One at
 *          a time. DISKS_MAX_OWN layers, TEMPLATE_MAX_LAYERS with those of the template.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/clock.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/vm/template/template.h"

#define KEEPER_FREEZE_MS clock_limit_ms(40000) /* a sync of everything that was written */
#define KEEPER_THAW_MS clock_limit_ms(5000)

struct keeper;

struct freeze {
	enum { FREEZE_IDLE, FREEZE_PARKING, FREEZE_SNAPSHOT, FREEZE_WAKING, FREEZE_MEMORY } state;
	bool with_memory;
	enum template_disk disk;
	int link;
	uint32_t link_gen, msg;
	uint64_t asked_ms, seq; /* of the audit record of a checkpoint */
	char label[KEEPER_MAX_LABEL];
	int code;
	char text[256];
};

/* Sends FROZEN when it is finished or has failed. label "": no checkpoint. */
void freeze_begin(struct keeper *k, int link, uint32_t msg, const char *label, bool memory);
/* For suspend.c, with memory. The VM is paused: makes the layers, then calls suspend_on_layers. */
void freeze_make_layers(struct keeper *k);
/* Writes the record of the checkpoint. */
int freeze_record(struct keeper *k, struct err *err) MUST_CHECK;
/* Sends FROZEN, if that is due. code < 0: the reason of the failure. */
void freeze_end(struct keeper *k, int code, const char *text);
/* VMM_EV_SNAPSHOT, or VMM_EV_SNAPSHOT_FAILED with the reason. */
void freeze_on_snapshot(struct keeper *k, bool ok, const char *text);
