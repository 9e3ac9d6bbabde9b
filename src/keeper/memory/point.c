/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point - a checkpoint with memory, when suspend.c has saved the VM.
 *
 * How      The layers and the memory are of the same instant: the VM was paused before its disks
 *          got new files, and still is. A rewind starts with empty files on top of these layers:
 *          such files are stored with the snapshot, and it names their size and time. The record is
 *          written before the guest continues. The directory gets its final name last.
 * Trust    The user's own directory.
 */
#include "memory.h"

#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/vm/vmm/disk.h"

static int make_tops(struct keeper *k, const char *dir, struct err *err)
{
	int r = 0;

	for (enum template_disk i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *path = layers_path(dir, i, 0);

		r = disk_make(path, k->disks->template.disks[i].files[0], k->disks->size[i], err);
	}
	return r;
}

int point_keep(struct keeper *k, struct err *err)
{
	AUTO_FREE char *dir = xasprintf("%s/" SUSPEND_NEW, k->dir);
	struct suspend_file *f = &k->suspend->file;
	int r = make_tops(k, dir, err);

	if (r == 0)
		r = suspend_file_stamp(dir, f, err);
	f->at_ms = clock_wall_ms();
	f->by = NULL;
	f->has_ca = k->trust->has_ca;
	f->ca = k->trust->ca;
	if (r == 0)
		r = suspend_file_prepare(k->dir, f, err);
	suspend_file_wipe(f);
	if (r == 0)
		r = freeze_record(k, err);
	return r < 0 ? r : suspend_file_keep(k->dir, k->freeze->seq, err);
}
