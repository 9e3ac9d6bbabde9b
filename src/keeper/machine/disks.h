/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disks - the layers of the VM's disks: the template's chain, the sandbox's read-only layers, its
 * top.
 *
 * How      disks_open_template, disks_set_size, then disks_open once the directory exists;
 *          disks_fill passes the layers to lib/vm/vmm. root.N.qcow2 are read-only (`sbx template
 *          save` and `sbx checkpoint` created them); root.qcow2 is the top, created if it is
 *          missing. The same for docker.
 * Trust    The user's own directory. lib/vm/template checks the template.
 * Owns     The paths and the opened template, until the keeper exits. All zero is valid and empty.
 * Limits   DISKS_MAX_OWN layers of the sandbox, with the top; VMM_MAX_LAYERS in all.
 * See      freeze.c, lib/vm/template/layers.h
 */
#pragma once

#include "lib/vm/template/layers.h"
#include "lib/vm/vmm/vmm.h"

#define DISKS_MAX_OWN (VMM_MAX_LAYERS - TEMPLATE_MAX_LAYERS)

struct disks {
	struct template template;
	char *own[TEMPLATE_N_DISKS][DISKS_MAX_OWN]; /* read-only layers upwards, then the top */
	size_t n_own[TEMPLATE_N_DISKS];
	unsigned last[TEMPLATE_N_DISKS]; /* number of the highest read-only layer; 0: none */
	uint64_t size[TEMPLATE_N_DISKS]; /* of a new top */
	bool is_larger;			 /* the root disk is larger than the template's */
};

/* By id, or by name if an old sandbox has no id. */
int disks_open_template(
	struct disks *d, const char *name, const char *id, struct err *err) MUST_CHECK;
/* Sets the bytes of the root disk; 0: as the template. Returns -EINVAL if that is larger. */
int disks_set_size(struct disks *d, uint64_t root, struct err *err) MUST_CHECK;
/* Finds the layers in the sandbox's directory and creates missing tops. */
int disks_open(struct disks *d, const char *dir, struct err *err) MUST_CHECK;
/* Waits for the qemu of a killed keeper to exit. */
int disks_wait_free(const struct disks *d, struct err *err) MUST_CHECK;
/* The paths remain owned by `d`. */
void disks_fill(const struct disks *d, struct vmm_disk ret[VMM_N_DISKS]);

/* True if the directory has a disk file of the sandbox. */
bool disks_exist(const char *dir);
