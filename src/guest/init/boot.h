/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot - boots from /init to a root file system that programs can use.
 *
 * How      boot_early runs in the initramfs: the three kernel file systems, the modules next to
 *          /init in name order. boot_root mounts the disk, switches to it and empties the
 *          initramfs; the same process continues. boot_late mounts what Debian programs expect.
 * Trust    The kernel, the initramfs (created by the host), the guest's own disk.
 * Limits   BOOT_DISK_MS for the disk to appear; no sleep if it exists.
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define BOOT_DISK_MS 5000
#define BOOT_ROOT_DISK "/dev/vda"

int boot_early(struct err *err) MUST_CHECK;
int boot_root(struct err *err) MUST_CHECK;
/* Failures are logged and ignored: a sandbox without /dev/shm can still be inspected. */
void boot_late(void);
/* Whether the word is on the kernel's command line. */
bool boot_has_option(const char *word);
