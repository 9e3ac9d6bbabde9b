/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - `sbx-keeper --merge`: merges layers of a stopped sandbox and exits.
 *
 * How      sbxd starts it when a sandbox has stopped, with the numbers of the layers that no
 *          checkpoint needs, and kills it before it uses the disks (src/sbxd/disk/merges.h). It
 *          takes the lock of the sandbox and has the lowest priority.
 * Trust    The command line is sbxd's. qemu-img reads the layers in a jail.
 * Limits   LAYERS_MAX numbers per disk.
 * See      lib/vm/template/layers_merge.h
 */
#pragma once

#define MERGE_EXIT_BUSY 75 /* the sandbox is in use */

/* Numbers as "1,3,4", or NULL. Returns the exit status. */
int merge_main(const char *id, const char *root, const char *docker)
	__attribute__((warn_unused_result));
