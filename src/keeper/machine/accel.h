/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accel - KVM or emulation, decided at each start before the machine is made.
 *
 * How      What is known (lib/vm/vmm/selftest.h) is taken. Else a child boots the test machine, so
 *          that the loop answers sbxd meanwhile: EV_SELFTEST is its end, EV_TIMER_SELFTEST says
 *          each second how long it has taken.
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
/* 0: decided. 1: a child finds it out, and the start goes on by start_go_on from the loop. */
int accel_begin(struct keeper *k, struct err *err) MUST_CHECK;
/* The same for who may wait. */
int accel_decide(struct keeper *k, struct err *err) MUST_CHECK;
void accel_on_end(struct keeper *k);
void accel_on_timer(struct keeper *k);
void accel_undo(struct keeper *k);
