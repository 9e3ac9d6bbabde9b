/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accel - checks whether this host can run a sandbox with KVM, before a long operation.
 *
 * How      Checks only that /dev/kvm can be opened. The keeper's self-test (lib/vm/vmm/selftest.h)
 *          checks that a kernel boots.
 * Trust    Software emulation is not an isolation boundary, so it is used only on request: with
 *          --accel, SBX_ACCEL or the setting vm.accel, or by the answer to the prompt here, which
 *          sets vm.accel.
 * See      check_host.c, tests/package/test_package.py
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/ui.h"

/* Checks "accel" in the body of a create: auto and kvm require /dev/kvm. Without it, prompts on a
 * terminal and sets "accel" to tcg if confirmed; else fails with a command to run. */
int accel_require(json_t *body, struct problem *p) MUST_CHECK;
/* What opens /dev/kvm to this user, by its mode and group. */
const char *accel_open_command(void);
