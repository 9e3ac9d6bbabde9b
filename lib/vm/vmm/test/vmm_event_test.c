/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about the end of a machine: who ended it, guest or host. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/vm/vmm/vmm_internal.h"

/* As qemu's SHUTDOWN says it. */
static int shut_down(struct vmm *v, const char *reason, struct vmm_event *ev)
{
	struct qmp_item it = {.kind = QMP_EVENT, .name = "SHUTDOWN"};
	int r;

	it.data = json_pack("{s:b,s:s}", "guest", 1, "reason", reason);
	assert_non_null(it.data);
	r = vmm_on_item(v, &it, ev);
	json_decref(it.data);
	return r;
}

/* A qemu that the host has ended is not a guest that panicked. */
static void says_who_ended_the_machine(void **state)
{
	static const struct {
		const char *reason, *text;
	} rows[] = {
		{"guest-reset", "the guest panicked or rebooted"},
		{"guest-panic", "the guest panicked or rebooted"},
		{"host-signal", "QEMU was killed by a signal"},
		{"host-error", "QEMU stopped the VM (host-error)"},
		{"", "QEMU stopped the VM (no reason)"},
		{"\xc2\x9b;2J", "QEMU stopped the VM (unknown reason)"},
		{"host-\x1b[2J", "QEMU stopped the VM (unknown reason)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct vmm_event ev = {};
		struct vmm v = {.image_fd = -1};

		assert_int_equal(shut_down(&v, rows[i].reason, &ev), 1);
		assert_int_equal(ev.kind, VMM_EV_RESET);
		assert_string_equal(ev.text, rows[i].text);
		/* What follows is no surprise. */
		assert_int_equal(shut_down(&v, rows[i].reason, &ev), 0);
	}
}

static void happen(struct vmm *v, const char *name)
{
	struct qmp_item it = {.kind = QMP_EVENT};
	struct vmm_event ev = {};

	(void)snprintf(it.name, sizeof(it.name), "%s", name);
	(void)!vmm_on_item(v, &it, &ev);
}

/* A machine that a full disk has stopped cannot let go of the share: its time does not run. */
static void the_time_to_unplug_runs_while_the_machine_does(void **state)
{
	struct vmm v = {.image_fd = -1, .detaching = true, .detach_ms = 1};
	struct vmm_event ev = {};

	happen(&v, "STOP");
	assert_int_equal(vmm_flow_on_overdue(&v, &ev), 0);
	assert_true(v.detaching);
	v.detach_ms = 1;
	happen(&v, "RESUME");
	assert_true(vmm_flow_deadline(&v) > clock_mono_ms());
	v.detach_ms = 1;
	assert_int_equal(vmm_flow_on_overdue(&v, &ev), 1);
	assert_int_equal(ev.kind, VMM_EV_SHARE_DETACH_FAILED);
}

static int refuse(struct vmm *v, const char *text, struct vmm_event *ev)
{
	struct qmp_item it = {.kind = QMP_ERROR, .tag = TAG_CONT};

	(void)snprintf(it.text, sizeof(it.text), "%s", text);
	return vmm_on_item(v, &it, ev);
}

/* Regression: QEMU refuses `cont` for a moment after a save, and the sandbox restarted. */
static void a_machine_continues_when_the_save_has_ended(void **state)
{
	struct vmm v = {.fd = -1, .image_fd = -1, .qmp.state = QMP_RUNNING};
	struct vmm_event ev = {};

	assert_int_equal(refuse(&v, "Migration is not finalized yet", &ev), 0);
	assert_int_equal(v.qmp.n_queue, 1);
	assert_int_equal(refuse(&v, "cannot lock root-1", &ev), 1);
	assert_int_equal(ev.kind, VMM_EV_REFUSED);
	assert_string_equal(ev.text, "cannot lock root-1");
	assert_int_equal(v.qmp.n_queue, 1);
	v.n_cont_tries = UINT_MAX;
	assert_int_equal(refuse(&v, "Migration is not finalized yet", &ev), 1);
	qmp_done(&v.qmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_to_unplug_runs_while_the_machine_does),
		cmocka_unit_test(a_machine_continues_when_the_save_has_ended),
		cmocka_unit_test(says_who_ended_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
