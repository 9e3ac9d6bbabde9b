/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm_events - events of qemu, and the exit of qemu and virtiofsd.
 *
 * How      Handles the events of lib/vm/vmm one at a time. An unexpected exit stops the sandbox and
 *          keeps its disks; during a boot there is one retry.
 * Trust    lib/vm/vmm limits and cleans the text of qemu. The guest writes the console text.
 */
#include "life.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/log.h"

/* Logs the guest's console line by line: log.c cleans each line. */
static void log_console(const char *text, size_t n)
{
	while (n > 0) {
		const char *nl = memchr(text, '\n', n);
		size_t line = nl ? (size_t)(nl - text) : n;

		log_info("console: %.*s", (int)MIN(line, 400u), text);
		text += MIN(line + 1, n);
		n -= MIN(line + 1, n);
	}
}

void vm_on_event(struct keeper *k, const struct vmm_event *ev)
{
	if (warm_on_vmm(k, ev))
		return;
	switch (ev->kind) {
	case VMM_EV_CTL_OPEN:
		if (k->state.phase == KEEPER_STARTING)
			link_progress(k, 80, "the guest is up");
		break;
	case VMM_EV_SHUTDOWN:
		if (k->state.phase == KEEPER_RUNNING || k->state.phase == KEEPER_STARTING)
			stop_begin(k, KEEPER_STOP_MS, "the guest powered itself off");
		break;
	case VMM_EV_RESET:
		log_error("%s", ev->text);
		if (vmm_console_tail(k->vmm) < 0)
			vmm_kill(k->vmm);
		break;
	case VMM_EV_CONSOLE:
		log_console(ev->console, ev->console_len);
		vmm_kill(k->vmm);
		break;
	case VMM_EV_DISK_FULL:
		space_on_full(k);
		break;
	case VMM_EV_SNAPSHOT:
	case VMM_EV_SNAPSHOT_FAILED:
		freeze_on_snapshot(k, ev->kind == VMM_EV_SNAPSHOT, ev->text);
		break;
	case VMM_EV_FATAL:
		log_error("qemu: %s", ev->text);
		vmm_kill(k->vmm);
		break;
	default:
		if (suspend_on_vmm(k, ev) || resume_on_vmm(k, ev))
			break;
		if (ev->text[0])
			log_warn("qemu: %s", ev->text);
		break;
	}
}

void machine_on_qemu_end(struct keeper *k)
{
	if (suspend_on_qemu_end(k) ||
		resume_on_failure(k, "QEMU exited while it read the snapshot"))
		return;
	if (k->plan == START_MAKE) {
		make_on_qemu_end(k);
		return;
	}
	switch (k->state.phase) {
	case KEEPER_STARTING:
		log_warn("QEMU exited while the guest was booting");
		chatter_drain(k);
		k->qemu_ended = true;
		warm_on_qemu_end(k);
		start_on_timeout(k);
		break;
	case KEEPER_RUNNING:
		stop_finish(k, "QEMU exited unexpectedly: see keeper.log");
		break;
	case KEEPER_STOPPING:
	case KEEPER_STOPPED:
	case KEEPER_N_PHASES:
		stop_finish(k, "");
		break;
	}
}

void machine_on_share_end(struct keeper *k)
{
	start_unwatch_share(k);
	suspend_on_share_end(k);
	if (k->state.phase == KEEPER_STOPPING)
		return;
	/* The guest may hang without its files: it gets less time to power off. */
	stop_begin(k, KEEPER_STOP_MS / 2, "virtiofsd exited unexpectedly: see keeper.log");
}
