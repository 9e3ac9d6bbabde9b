/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accel - whether this machine can run a sandbox behind KVM, asked before anything long is done.
 *
 * How      Only what is known at once is looked at: may /dev/kvm be opened? Whether a kernel boots
 *          there is found out by the keeper's self-test (lib/vm/vmm/selftest.h).
 * Trust    Software emulation is no wall, so nobody gets it without saying so: with --accel,
 *          SBX_ACCEL or the setting vm.accel, or by answering the question here, which sets
 *          vm.accel.
 * See      check_host.c, tests/package/test_package.py
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/ui.h"

/* Looks at "accel" of the body of a create: auto and kvm need /dev/kvm. Without it asks on a
 * terminal, and sets "accel" to tcg when the answer is yes; else fails with the reason and what
 * to type. */
int accel_require(json_t *body, struct problem *p) MUST_CHECK;
/* What opens /dev/kvm to this user, by its mode and group. */
const char *accel_open_command(void);
