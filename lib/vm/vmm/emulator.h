/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator - may software emulation give each virtual processor a thread of its own?
 *
 * How      QEMU before 8.1 can translate an instruction of the guest's kernel while another thread
 *          patches it, and then runs the half-patched one for good: "Oops: int3", and the guest is
 *          gone. A guest's root gets there in seconds by switching a static key to and fro; once,
 *          of hundreds of boots, the first connection did. One thread for all processors cannot.
 *          qemu is asked for its version once; the answer is kept beside the verdict on KVM for as
 *          long as its file is the same.
 * Trust    Runs in keeper. What qemu says is read as two numbers; anything else means one thread.
 * Limits   EMULATOR_MS.
 * See      emulator_test.c, vmm_boot_test.c
 */
#pragma once

#include <stdbool.h>
#include "vmm.h"

#define EMULATOR_MS 10000

/* VMM_TCG or VMM_TCG_PARALLEL for that qemu. cache_dir NULL: it is asked every time. */
enum vmm_accel emulator_accel(const char *qemu, const char *cache_dir);
/* Of the first line of `qemu --version`. */
bool emulator_is_parallel(const char *said);
