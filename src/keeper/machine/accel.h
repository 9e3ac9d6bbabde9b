/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accel - selects KVM or software emulation at each start, before the VM is created.
 *
 * How      Uses a known result (lib/vm/vmm/selftest.h). Otherwise a child boots a test VM, so that
 *          the loop can serve sbxd meanwhile: EV_SELFTEST is its exit, EV_TIMER_SELFTEST reports
 *          the time each second.
 * Trust    As lib/vm/vmm/selftest.h.
 * Limits   SELFTEST_KVM_MS in the child.
 */
#pragma once

#include "lib/os/loop/loop.h"
#include "lib/vm/vmm/selftest.h"

struct keeper;

struct accel {
	struct selftest_child child;
	unsigned seconds;
	struct loop_timer timer;
};

void accel_init(struct keeper *k);
/* Returns 0 if it is decided, 1 if a child tests it: life_ops.prepared continues the start then. */
int accel_begin(struct keeper *k, struct err *err) MUST_CHECK;
/* The same, but waits. */
int accel_decide(struct keeper *k, struct err *err) MUST_CHECK;
void accel_on_end(struct keeper *k);
void accel_on_timer(struct keeper *k);
void accel_undo(struct keeper *k);
