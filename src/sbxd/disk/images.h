/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images - creates snapshots in the background, for classes of VMs that had to boot.
 *
 * How      images_want notes template, CPUs, memory and accelerator of a sandbox that was booted
 *          for lack of a snapshot. Later sbxd starts `sbx-keeper --make-image` for it, with low
 *          priority and one at a time. The keeper checks whether the snapshot exists by then. No
 *          request waits for it. The setting warm.images disables all of it.
 * Trust    The specs in the registry. Only the program's exit status is used.
 * Owns     One process, killed when sbxd exits.
 * Limits   IMAGES_MAX wishes; IMAGES_MS for one image.
 * See      lib/vm/vmm/image/image.h, src/keeper/memory/warm_make.c
 */
#pragma once

#include "src/sbxd/hands/hands.h"
#include "lib/base/clock.h"

#define IMAGES_MAX 8
#define IMAGES_DELAY_MS 3000  /* lets the user work with the sandbox first */
#define IMAGES_AGAIN_MS 30000 /* while another program creates one */
#define IMAGES_MS clock_limit_ms(300000)

struct images {
	void (*on_made)(struct sbxd *d); /* a new snapshot exists */
	struct hands_image wishes[IMAGES_MAX];
	size_t n;
	struct hands_child child; /* pid 0: none is running */
	struct loop_timer timer;
};

void images_init(struct images *im, void (*on_made)(struct sbxd *d));
void images_done(struct sbxd *d);
/* The sandbox runs, and was booted for lack of a snapshot. */
void images_want(struct sbxd *d, const char *id, const char *accel);
/* The same for VMs like `like`. */
void images_want_class(
	struct sbxd *d, const struct hands_image *like, const char *template, const char *accel);
void images_on_timer(struct sbxd *d);
void images_on_exit(struct sbxd *d);
/* Removes snapshots of removed templates. */
void images_collect(void);
