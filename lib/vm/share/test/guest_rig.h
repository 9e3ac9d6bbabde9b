/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_rig - what the first program of a test's VM does first, for guard_vm_guest.c and
 * guard_random_guest.c.
 *
 * How      guest_rig_start makes /dev, /proc and /mnt, and returns the serial port, which passes
 *          bytes as they are.
 * Trust    Tests only.
 * See      vm_rig.h
 */
#pragma once

int guest_rig_start(void);
