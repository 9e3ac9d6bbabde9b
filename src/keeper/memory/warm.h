/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm - starts that restore the snapshot of a template, and the creation of such snapshots.
 *
 * How      warm_open opens the snapshot for plan_select. With the plan START_WARM, the disks are
 *          those of the snapshot, and three things happen at the same time: qemu starts and reads
 *          the snapshot; a child process checks its hashes (EV_IMAGE); edge, virtiofsd and egress
 *          start. The VM is paused until all three are good: then it gets its share and runs. From
 *          /setup on everything is as after a boot.
 *
 *          If something fails before the sandbox runs, warm_fail undoes everything, the VM boots,
 *          and state.cold_why has the reason.
 *
 *          warm_make.c is `sbx-keeper --make-image`: boots a VM without a sandbox, prepares the
 *          guest (/park), saves the VM and exits.
 * Trust    Snapshot files are the user's own. Their hashes are checked before the guest runs; qemu
 *          reads the same open file in its jail meanwhile. The guest replies yes or no.
 * Owns     The child that checks; for --make-image the draft and the child that writes.
 * Limits   KEEPER_WARM_MS_*, KEEPER_MAKE_*.
 * Never    Saves a VM with an identity; uses a part of a snapshot.
 * See      lib/vm/vmm/image/image.h, docs/warm.md
 */
#pragma once

#include "lib/base/clock.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/loop/loop.h"
#include "lib/vm/vmm/image/image.h"

#define KEEPER_WARM_MS_KVM clock_limit_ms(15000)
#define KEEPER_WARM_MS_TCG clock_limit_ms(60000)
#define KEEPER_MAKE_MS clock_limit_ms(180000) /* from the start to the snapshot */
#define KEEPER_PARK_TRIES 100		      /* while the guest gets ready; */
#define KEEPER_PARK_GAP_MS 100		      /* with a pause between two */
#define KEEPER_SETTLE_MS \
	3500 /* for the guest to return free memory to the host (it reports every 2 s) */

struct keeper;

enum warm_step {
	WARM_WAITING,	/* for qemu, and for the child that checks and fills the memory */
	WARM_RESTORING, /* qemu reads the devices */
	WARM_RUNNING,	/* the guest runs again; /setup follows */
};

struct warm {
	enum warm_step step;
	struct image image;
	struct image_check check;
	bool is_checked, is_ready, is_restored, is_rest_started;
	bool is_share_there, is_edge_ready;
	char failed[128]; /* why the VM boots instead; "": no failure */

	/* warm_make.c */
	enum { MAKE_BOOTING, MAKE_PARKED, MAKE_SAVING, MAKE_SAVED } make_step;
	unsigned park_tries;
	struct image_draft draft;
	struct image_save save;
	struct image_file saved[IMAGE_N_SAVED];
	bool is_packed;
	int exit_code;
	struct loop_timer timer;
};

void warm_init(struct keeper *k);
/* Opens the snapshot of the template. Returns NULL, or `why` with the reason to boot instead. */
const char *warm_open(struct keeper *k, char *why, size_t n);
/* Sets the plan to START_COLD, and cold_why. A VM of the pool is stopped instead. */
void warm_boot_instead(struct keeper *k, const char *why);
/* Copies the disks of the snapshot to the sandbox's directory; boots instead if that fails. */
void warm_take_disks(struct keeper *k);
/* Starts the check, or only opens the snapshot for a VM of the pool. */
int warm_check(struct keeper *k, struct err *err) MUST_CHECK;
/* A VM of the pool was claimed: starts the check, and what a warm start starts beside it. */
int warm_begin(struct keeper *k, struct err *err) MUST_CHECK;
/* From plan_select until the sandbox runs or boots instead. */
bool warm_is_on(const struct keeper *k);
/* Returns true if the event is handled. */
bool warm_on_vmm(struct keeper *k, const struct vmm_event *ev);
void warm_on_child(struct keeper *k);
/* Called while the sandbox starts. */
void warm_on_qemu_end(struct keeper *k);
/* Returns true while /setup must wait for the share; start_on_ready is called again then. */
bool warm_holds_setup(struct keeper *k);
/* Boots instead, from the loop. */
void warm_fail(struct keeper *k, const char *why);
/* Boots instead, now. For the boot watchdog. */
void warm_fall_back(struct keeper *k);
void warm_undo(struct keeper *k);
/* Removes the disks that were copied from the snapshot. */
void warm_remove_disks(const struct keeper *k);
/* The sandbox runs: closes the snapshot. */
void warm_finish(struct keeper *k);
/* Writes a line to keeper.log with the milliseconds since the start of the keeper. */
void warm_mark(const struct keeper *k, const char *what);

/* warm_make.c */
struct make_options {
	const char *template, *cpus, *memory, *disk, *accel;
};

int make_main(struct keeper *k, const struct make_options *o);
void make_on_ready(struct keeper *k);
bool make_on_vmm(struct keeper *k, const struct vmm_event *ev);
void make_on_child(struct keeper *k);
void make_on_qemu_end(struct keeper *k);
void make_on_timer(struct keeper *k);
void make_fail(struct keeper *k, const char *why);
/* For hands.c: renames the draft to its final name and removes unused snapshots. */
int make_publish(struct keeper *k, struct err *err) MUST_CHECK;
