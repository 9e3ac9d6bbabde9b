/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine - qemu, virtiofsd and the disks.
 *
 * How      vm.c starts and ends both; accel.c chooses the accelerator; crowd.c limits the files
 *          that virtiofsd holds open; guard.c records what the guard of the share denied; merge.c
 *          merges layers of a stopped sandbox. Events of qemu go up through life_ops.vm_event.
 * Trust    qemu's messages are bounded and cleaned by lib/vm/vmm.
 */
#pragma once

#include "src/keeper/network/network.h"
#include "accel.h"
#include "crowd.h"
#include "disks.h"
#include "guard.h"
#include "merge.h"
#include "lib/vm/vmm/image/image.h"

/* vm.c: qemu and virtiofsd. */
int machine_find_template(struct keeper *k, struct err *err) MUST_CHECK;
int machine_make_initrd(struct keeper *k, struct err *err) MUST_CHECK;
void machine_end_qemu(struct keeper *k);
int machine_watch(struct keeper *k) MUST_CHECK;
void machine_on_qmp(struct keeper *k);
/* Only the choice of the accelerator, for `sbx diagnose`. */
int start_selftest(struct keeper *k, struct err *err) MUST_CHECK;
/* The name of a snapshot for this VM (lib/vm/vmm/image/image.h). */
int start_image_key(
	const struct keeper *k, char key[IMAGE_KEY_LEN + 1], struct err *err) MUST_CHECK;
/* Starts and stops virtiofsd; qemu gets its socket later. */
int start_share(struct keeper *k, struct err *err) MUST_CHECK;
void start_stop_share(struct keeper *k);
/* Fills the workspaces of /setup and /wake. Returns their number. */
size_t start_fill_mounts(const struct keeper *k, struct guest_mount mounts[SPEC_MAX_WORKSPACES]);
void start_unwatch_share(struct keeper *k);
/* Also for suspend.c and resume.c. */
int start_port(struct keeper *k, struct err *err) MUST_CHECK;
int start_qemu(struct keeper *k, struct err *err) MUST_CHECK;
bool machine_is_stalled(const struct keeper *k);
