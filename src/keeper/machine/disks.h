/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disks - what the machine's disks are made of: the template's chain, the sandbox's frozen layers,
 * its top.
 *
 * How      disks_open_template, disks_set_size, then disks_open once the folder is there;
 *          disks_fill says it to lib/vm/vmm.
 * Trust    Runs in keeper. The user's own folder; the template is checked by lib/vm/template.
 * Owns     The paths and the opened template, until the keeper exits. All zero is a valid empty
 *          one.
 * Limits   DISKS_MAX_OWN layers of the sandbox's own, the top included; VMM_MAX_LAYERS in all.
 * See      freeze.c
 */
#pragma once

#include "lib/vm/template/template.h"
#include "lib/vm/vmm/vmm.h"

#define DISKS_MAX_OWN (VMM_MAX_LAYERS - TEMPLATE_MAX_LAYERS)

struct disks {
	struct template template;
	char *own[TEMPLATE_N_DISKS][DISKS_MAX_OWN]; /* frozen ones upwards, then the top */
	size_t n_own[TEMPLATE_N_DISKS];
	uint64_t size[TEMPLATE_N_DISKS]; /* of a new top */
	bool is_larger;			 /* the root than the template's */
};

/* By id, or by name where a sandbox of old has none. */
int disks_open_template(
	struct disks *d, const char *name, const char *id, struct err *err) MUST_CHECK;
/* The root disk is to have so many bytes; 0: as the template's. -EINVAL when that one is larger. */
int disks_set_size(struct disks *d, uint64_t root, struct err *err) MUST_CHECK;
/* Finds the layers in the sandbox's folder and makes tops that are missing. */
int disks_open(struct disks *d, const char *dir, struct err *err) MUST_CHECK;
/* Waits for the qemu of a keeper that was killed a moment ago. */
int disks_wait_free(const struct disks *d, struct err *err) MUST_CHECK;
/* The paths stay those of `d`. */
void disks_fill(const struct disks *d, struct vmm_disk ret[VMM_N_DISKS]);

/* DIR/root.N.qcow2; n 0: the top. */
char *disks_layer(const char *dir, enum template_disk disk, size_t n);
/* True if the directory has a disk file of the sandbox. */
bool disks_exist(const char *dir);
