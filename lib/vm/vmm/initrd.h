/* SPDX-License-Identifier: Apache-2.0 */
/*
 * initrd - writes the initial file system: sbx-guest as /init and the template's modules.
 *
 * How      A newc cpio (a few directories and /init), then the bytes of the template's modules.cpio
 *          from the next multiple of four; the kernel unpacks one after the other. No compression:
 *          reading 2 MB is faster than unpacking 1 MB under TCG.
 * Trust    Runs in keeper on files of the same user. Sees no guest bytes.
 * Owns     Nothing; writes in the directory of `dest` and renames, so a partial file is never seen.
 * Limits   INITRD_MAX_INIT, INITRD_MAX_MODULES.
 * Never    Writes times, owners or inode numbers of the host: same input, same bytes.
 * See      initrd_test.c
 */
#pragma once

#include "lib/base/err.h"

#define INITRD_MAX_INIT (64 << 20)
#define INITRD_MAX_MODULES (256 << 20)

/* modules may be NULL. The caller chooses `dest` such that other input means another name. */
int initrd_write(
	const char *dest, const char *init, const char *modules, struct err *err) MUST_CHECK;
