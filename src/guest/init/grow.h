/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow - grows the root file system to the size of the disk, which may exceed the template's.
 *
 * How      grow_file_system compares the superblock with the size of the disk, and has the kernel
 *          grow the mounted ext4 (EXT4_IOC_RESIZE_FS). A disk of the template's size costs one
 *          read.
 * Trust    The guest's own disk. Its contents can only harm the guest.
 * Never    Stops the boot: a file system that cannot be grown is used as it is, and the log has the
 *          reason.
 * See      grow_test.c, tests/e2e/test_lifecycle.py
 */
#pragma once

#include <stdint.h>

#define GROW_SUPERBLOCK_AT 1024
#define GROW_SUPERBLOCK_BYTES 1024

/* Returns the wanted number of blocks; 0: not to be grown, or not ext4. */
uint64_t grow_blocks(const uint8_t superblock[GROW_SUPERBLOCK_BYTES], uint64_t disk_bytes);
void grow_file_system(const char *disk, const char *mounted);
