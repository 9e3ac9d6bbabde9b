/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub - writes the beginning of a kernel file, for VMs that are restored and never boot.
 *
 * How      QEMU reads the setup sectors of a kernel before it starts and keeps a copy of the
 *          complete file for the firmware. A restored VM has its kernel in its memory and ends
 *          instead of rebooting, so the setup sectors and STUB_MORE bytes are enough.
 * Trust    Runs in keeper on the template's kernel.
 * Owns     Nothing; writes through file_save, so a partial file is never seen.
 * Limits   The setup sectors: at most 128 KiB.
 * See      stub_test.c
 */
#pragma once

#include "lib/base/err.h"

#define STUB_MORE 4096

/* -ENOTSUP if the file is not a bzImage of boot protocol 2.00 or later. */
int stub_write(const char *dest, const char *kernel, struct err *err) MUST_CHECK;
