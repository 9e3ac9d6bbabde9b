/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine - what qemu and virtiofsd report, and what follows from their end.
 *
 * How      Events of lib/vm/vmm one at a time. Whatever ends the machine when nobody asked ends the
 *          sandbox, with its disks kept and the reason said; while it boots there is one more try.
 * Trust    qemu's words are bounded and cleaned by lib/vm/vmm; the console text is the guest's.
 */
#include "src/keeper/keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/log.h"

int machine_watch(struct keeper *k)
{
	struct loop_key key = {.kind = EV_QMP, .gen = ++k->vmm_gen};
	int r = loop_add(&k->loop, vmm_poll_fd(k->vmm), vmm_poll_events(k->vmm), key);

	key.kind = EV_QEMU_END;
	return r < 0 ? r : loop_add(&k->loop, vmm_child(k->vmm)->pidfd, EPOLLIN, key);
}

/* The guest's console, line by line, so that log.c can clean each. */
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

static void on_event(struct keeper *k, const struct vmm_event *ev)
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

void machine_on_qmp(struct keeper *k)
{
	struct vmm_event ev;
	uint64_t deadline;

	while (k->vmm && vmm_next(k->vmm, &ev) > 0)
		on_event(k, &ev);
	if (!k->vmm)
		return;
	(void)!loop_mod(&k->loop, vmm_poll_fd(k->vmm), vmm_poll_events(k->vmm),
		(struct loop_key){.kind = EV_QMP, .gen = k->vmm_gen});
	deadline = vmm_deadline(k->vmm);
	if (deadline == UINT64_MAX)
		loop_timer_clear(&k->loop, &k->vmm_timer);
	else
		loop_timer_set(&k->loop, &k->vmm_timer, deadline,
			(struct loop_key){.kind = EV_TIMER_VMM, .gen = k->vmm_gen});
}

void machine_on_qemu_end(struct keeper *k)
{
	if (suspend_on_qemu_end(k) || resume_on_failure(k, "qemu ended while it read the memory"))
		return;
	if (k->warm.is_making) {
		make_on_qemu_end(k);
		return;
	}
	switch (k->state.phase) {
	case KEEPER_STARTING:
		log_warn("qemu ended while the guest was booting");
		chatter_drain(k);
		k->qemu_ended = true;
		warm_on_qemu_end(k);
		start_on_timeout(k);
		break;
	case KEEPER_RUNNING:
		stop_finish(k, "qemu ended unexpectedly: see keeper.log");
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
	if (k->state.phase == KEEPER_STOPPING)
		return;
	/* The guest may hang on its files now: a short time to power off, then it is ended. */
	stop_begin(k, KEEPER_STOP_MS / 2, "virtiofsd ended unexpectedly: see keeper.log");
}

/* Field 3 of /proc/PID/stat, behind the name in brackets. */
bool machine_is_stalled(const struct keeper *k)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	AUTO_CLOSE int fd = -1;

	if (!k->vmm)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)vmm_child(k->vmm)->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}
