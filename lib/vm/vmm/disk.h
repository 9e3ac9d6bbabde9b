/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - the qcow2 overlays of a sandbox, created with qemu-img.
 *
 * How      qemu-img runs in the jail of JAIL_QEMU, with the files that it reads or creates. The
 *          backing name in the overlay is informational: qemu gets the base by name on every start
 *          and ignores it, because paths differ inside the jail.
 * Trust    Runs in keeper and sbxd. Paths are ours.
 * Owns     Nothing; a new image is written in the directory of `path` and renamed.
 * Limits   DISK_TIMEOUT_MS, DISK_COPY_MS, DISK_FREE_MS, DISK_MAX_BYTES.
 * See      disk_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

#define DISK_QEMU_IMG "/usr/bin/qemu-img"
#define DISK_TIMEOUT_MS 30000
#define DISK_COPY_MS 300000
#define DISK_FREE_MS 10000
#define DISK_MAX_BYTES (1ull << 40)
#define DISK_MIN_FREE (512ull << 20)

/* Creates the overlay `path` on the raw image `base`; -EEXIST if it exists. size 0: as base; a size
 * below that of the base is refused. */
int disk_make(const char *path, const char *base, uint64_t size, struct err *err) MUST_CHECK;
/* The size that a guest sees of a chain, files[0] raw and the others qcow2 upwards, from the header
 * of its last file. -EUCLEAN when that head is not of qcow2 or its size is 0 or above
 * DISK_MAX_BYTES. */
int disk_chain_size(
	const char *const *files, size_t n, uint64_t *ret_size, struct err *err) MUST_CHECK;
/* Writes what a chain holds, files[0] raw and the others qcow2 upwards, to the new raw file
 * `out`; in the jail, with these files only, which a running qemu may have open. -ENOSPC when less
 * than DISK_MIN_FREE would be left. */
int disk_flatten(const char *const *files, size_t n, const char *out, struct err *err) MUST_CHECK;
/* Writes what the qcow2 file `upper` holds into the qcow2 file `lower` below it; in the jail. The
 * chain files[0..n) is below both and is not changed. `upper` must be a copy: qemu-img opens it for
 * writing. */
int disk_merge(const char *const *files, size_t n, const char *lower, const char *upper,
	struct err *err) MUST_CHECK;
/* Waits until no qemu has the image locked: one that was killed gives its memory back first, which
 * takes a moment. -EBUSY after that many ms. */
int disk_wait_free(const char *path, uint64_t ms, struct err *err) MUST_CHECK;
