/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <stdio.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define STEP_PERCENT 3
#define STEP_TEXT "choosing the accelerator"

void accel_init(struct keeper *k)
{
	k->selftest->child = (struct selftest_child)SELFTEST_CHILD_EMPTY;
}

static enum selftest_wish wanted_accel(const struct keeper *k)
{
	static const enum selftest_wish wishes[] = {
		[SPEC_ACCEL_AUTO] = SELFTEST_AUTO,
		[SPEC_ACCEL_KVM] = SELFTEST_WANT_KVM,
		[SPEC_ACCEL_TCG] = SELFTEST_WANT_TCG,
	};

	return wishes[k->spec.accel];
}

static void take_accel(struct keeper *k, enum vmm_accel accel)
{
	k->accel = accel;
	(void)!str_copy(k->state.accel, sizeof(k->state.accel), accel == VMM_KVM ? "kvm" : "tcg");
	if (accel != VMM_KVM)
		log_warn(
			"software emulation (TCG) is not an isolation boundary: the jail around QEMU is the only isolation layer");
}

static void set_timer(struct keeper *k)
{
	loop_timer_set(&k->loop, &k->selftest->timer, clock_mono_ms() + 1000,
		(struct loop_key){.kind = EV_TIMER_SELFTEST});
}

static int test_kvm(struct keeper *k, const struct selftest_input *in, struct err *err)
{
	int r = selftest_begin(in, &k->selftest->child, err);

	if (r < 0)
		return r;
	r = loop_add(&k->loop, k->selftest->child.pidfd, EPOLLIN,
		(struct loop_key){.kind = EV_SELFTEST});
	if (r < 0)
		return err_errno(err, r, "cannot watch the KVM self-test");
	link_progress(k, STEP_PERCENT, "testing KVM");
	set_timer(k);
	return 1;
}

int accel_begin(struct keeper *k, struct err *err)
{
	AUTO_FREE char *cache = paths_get(PATHS_RUNTIME, NULL);
	struct selftest_input in = {
		.kernel = k->disks->template.kernel, .initrd = k->initrd, .cache_dir = cache};
	enum vmm_accel accel;
	int r;

	link_progress(k, STEP_PERCENT, STEP_TEXT);
	r = vmm_accel_known(wanted_accel(k), &in, &accel, err);
	if (r == 0)
		take_accel(k, accel);
	else if (r > 0)
		r = test_kvm(k, &in, err);
	return r < 0 ? err_wrap(err, r, STEP_TEXT) : r;
}

int accel_decide(struct keeper *k, struct err *err)
{
	AUTO_FREE char *cache = paths_get(PATHS_RUNTIME, NULL);
	struct selftest_input in = {
		.kernel = k->disks->template.kernel, .initrd = k->initrd, .cache_dir = cache};
	enum vmm_accel accel;
	int r = vmm_accel_decide(wanted_accel(k), &in, &accel, err);

	if (r == 0)
		take_accel(k, accel);
	return r;
}

static void unwatch_test(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->selftest->timer);
	loop_del(&k->loop, k->selftest->child.pidfd);
}

void accel_on_end(struct keeper *k)
{
	struct err err = {0};
	int r;

	unwatch_test(k);
	r = selftest_end(&k->selftest->child, &err);
	if (r < 0) {
		r = err_wrap(&err, r, STEP_TEXT);
	} else {
		take_accel(k, VMM_KVM);
		r = k->life->prepared(k, &err);
	}
	if (r < 0)
		k->life->stop(k, 0, err_text(&err, r));
}

void accel_on_timer(struct keeper *k)
{
	(void)snprintf(
		k->state.text, sizeof(k->state.text), "testing KVM, %u s", ++k->selftest->seconds);
	link_push_state(k);
	set_timer(k);
}

void accel_undo(struct keeper *k)
{
	if (k->selftest->child.pidfd < 0)
		return;
	unwatch_test(k);
	selftest_done(&k->selftest->child);
}
