/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator - whether software emulation can use one thread for each virtual CPU.
 *
 * How      QEMU before 8.1 can translate an instruction of the guest's kernel while another thread
 *          patches it, and then runs the half-patched one for good: "Oops: int3", and the guest
 *          crashes. Guest root can cause this in seconds by toggling a static key; in one of
 *          hundreds of boots, the first connection did. With one thread for all CPUs it cannot
 *          happen. The version of qemu is queried once; the answer is stored with the KVM verdict
 *          while the file of qemu is the same.
 * Trust    Runs in keeper. The output of qemu is parsed as two numbers; anything else means one
 *          thread.
 * Limits   EMULATOR_MS.
 * See      emulator_test.c, vmm_boot_test.c
 */
#pragma once

#include <stdbool.h>
#include "vmm.h"

#define EMULATOR_MS 10000

/* VMM_TCG or VMM_TCG_PARALLEL for that qemu. cache_dir NULL: queried every time. */
enum vmm_accel emulator_accel(const char *qemu, const char *cache_dir);
