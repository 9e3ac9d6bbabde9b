/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend - saves the VM to the sandbox's directory.
 *
 * How      /park freezes the guest's programs and unmounts the share; the share is detached; edge,
 *          egress, origins and virtiofsd are stopped; qemu writes the device state, and a child
 *          stores and hashes it and the memory; qemu exits, and the directory gets its final name
 *          (suspend_file.h). Only then the sandbox is suspended. A failure before that is undone:
 *          the VM continues, gets its share again, and is woken. If the disk becomes full
 *          meanwhile, qemu pauses the VM: space.c continues it when there is space, and then it is
 *          woken. resume.c restores it.
 * Trust    The guest replies yes or no with a text for users.
 * Owns     The child that writes.
 * Limits   KEEPER_PARK_MS, KEEPER_WAKE_MS, the timeouts of lib/vm/vmm and IMAGE_CHILD_MS.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static const struct loop_key timer_key = {.kind = EV_TIMER_SUSPEND};

void suspend_init(struct keeper *k)
{
	k->suspend->save = (struct image_save)IMAGE_SAVE_EMPTY;
	k->suspend->check = (struct image_check)IMAGE_CHECK_EMPTY;
	k->suspend->link = -1;
}

static void drop_save(struct keeper *k)
{
	if (k->suspend->save.pidfd >= 0)
		loop_del(&k->loop, k->suspend->save.pidfd);
	image_save_done(&k->suspend->save);
	loop_timer_clear(&k->loop, &k->suspend->timer);
}

static void answer_suspend(struct keeper *k, int code, const char *text)
{
	if (k->suspend->is_checkpoint)
		freeze_end(k, code, text);
	link_answer(k, k->suspend->link, k->suspend->link_gen, k->suspend->msg, code, text);
	k->suspend->link = -1;
}

/* ---- undo ---- */

int suspend_give_share(struct keeper *k, struct err *err)
{
	int r = 0;

	if (k->has_share && k->suspend->is_share_lost)
		return err_set(err, -EIO, "virtiofsd exited: see keeper.log");
	if (k->has_share) /* never detached */
		return 0;
	r = start_share(k, err);
	if (r < 0 || !k->has_share)
		return r;
	k->suspend->is_share_due = true;
	return vmm_attach_share(k->vmm, TAKE_FD(k->share.vhost_fd));
}

/* The VM still exists: restarts what was stopped, as at a start. */
static void go_on(struct keeper *k)
{
	struct err err = {0};
	int r = 0;

	drop_save(k);
	suspend_file_tidy(k->dir);
	k->suspend->step = SUSPEND_NONE;
	k->suspend->is_cancelled = false;
	k->suspend->is_waking = k->suspend->is_undone = true;
	k->state.phase = KEEPER_STARTING;
	link_progress(k, 90, "resuming");
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms() + KEEPER_BOOT_MS_TCG,
		(struct loop_key){.kind = EV_TIMER_BOOT});
	if (k->suspend->is_paused) {
		k->state.paused = false; /* if the disk is still full, qemu pauses it again */
		r = vmm_resume(k->vmm);
	}
	if (r == 0)
		r = suspend_give_share(k, &err);
	if (r == 0 && !egress_is_alive(k))
		egress_start(k);
	if (r == 0 && !edge_is_alive(k))
		r = edge_start(k, &err);
	else if (r == 0 && edge_is_up(k))
		k->life->ready(k);
	k->suspend->is_paused = false;
	if (r < 0)
		k->life->stop(k, 0, err_text(&err, r));
}

static void fail_suspend(struct keeper *k, const char *why)
{
	char text[KEEPER_MAX_TEXT];

	(void)snprintf(text, sizeof(text), "the sandbox was not %s and keeps running: %s",
		k->suspend->is_checkpoint ? "saved" : "suspended", why);
	log_error("%s", text);
	answer_suspend(k, -EIO, text);
	go_on(k);
}

/* ---- suspend ---- */

static void on_parked(struct keeper *k, const struct guest_reply *reply);
static const struct ask_kind park_ask = {
	GUEST_PATH_PARK, .on_reply = on_parked, .is_patient = true};

static int ask_park(struct keeper *k)
{
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = guest_put_park(&wr, &(struct guest_parking){.kind = GUEST_PARK_SUSPEND});

	return r < 0 ? r : ask_guest(k, &park_ask, slice_of(buf, wr.n), KEEPER_PARK_MS, -1, 0);
}

/* The memory that the guest uses, if it is not on the disk yet; pages of zeros take no space. */
static int check_room(const struct keeper *k, struct err *err)
{
	struct stat st = {0};
	uint64_t memory;
	int r;

	if (!k->vmm || fstat(vmm_memory_fd(k->vmm), &st) < 0)
		return 0;
	memory = k->memory_dir && !k->suspend->is_checkpoint ? 0 : (uint64_t)st.st_blocks * 512;
	r = space_check(k, memory + SUSPEND_MORE, err);
	return r < 0 ? err_wrap(err, r, "cannot store the snapshot") : 0;
}

static int begin_suspend(struct keeper *k, int link, uint32_t msg, struct err *err)
{
	int r;

	if (k->state.phase != KEEPER_RUNNING || k->suspend->step != SUSPEND_NONE || !edge_is_up(k))
		return err_set(err, -EAGAIN, "the sandbox is not running: try again later");
	if (k->freeze->state != FREEZE_IDLE)
		return err_set(
			err, -EAGAIN, "the sandbox is being saved as a template: try again later");
	if (k->state.paused)
		return err_set(err, -EAGAIN, "the sandbox is " SPACE_PAUSED);
	if (machine_is_stalled(k))
		return err_set(err, -EAGAIN, "the VM is stopped by a signal");
	r = check_room(k, err);
	if (r < 0)
		return err_wrap(err, r, "the sandbox was not %s and keeps running",
			k->suspend->is_checkpoint ? "saved" : "suspended");
	r = ask_park(k);
	if (r < 0)
		return err_errno(err, r, "cannot send a request to the guest");
	k->suspend->step = SUSPEND_PARKING;
	k->suspend->link = link;
	k->suspend->link_gen = link >= 0 ? k->links[link].gen : 0;
	k->suspend->msg = msg;
	k->suspend->is_paused = k->suspend->is_cancelled = k->suspend->is_share_lost = false;
	k->state.phase = KEEPER_STOPPING;
	waiting_drop_all(k);
	link_progress(k, 10,
		k->suspend->is_checkpoint ? "checkpoint: freezing programs"
					  : "suspending: freezing programs");
	return 0;
}

int suspend_begin(struct keeper *k, const char *by, int link, uint32_t msg, struct err *err)
{
	int r;

	if (k->suspend->step == SUSPEND_NONE)
		k->suspend->is_checkpoint = false;
	r = begin_suspend(k, link, msg, err);
	if (r == 0)
		k->suspend->by = by;
	return r;
}

static const char in_flight[] =
	"a request with a credential is in progress: try again when it has ended";

int suspend_begin_checkpoint(struct keeper *k, struct err *err)
{
	if (origins_are_busy(k) || clerks_are_busy(k))
		return err_set(err, -EAGAIN, "%s", in_flight);
	if (k->suspend->step == SUSPEND_NONE)
		k->suspend->is_checkpoint = true;
	return begin_suspend(k, -1, 0, err);
}

/* The last bytes of the guest, from before it parked, still pass through edge to its clients. */
static void wait_for_clients(struct keeper *k)
{
	k->suspend->step = SUSPEND_LINGERING;
	loop_timer_set(&k->loop, &k->suspend->timer, k->suspend->parked_ms + KEEPER_PARK_LINGER_MS,
		timer_key);
}

static void on_parked(struct keeper *k, const struct guest_reply *reply)
{
	int r;

	if (k->suspend->step != SUSPEND_PARKING)
		return;
	if (!reply->ok) {
		fail_suspend(k, reply->text);
		return;
	}
	if (k->suspend->is_cancelled) {
		go_on(k);
		return;
	}
	if (reply->text[0])
		log_warn("suspending: %s", reply->text);
	k->suspend->parked_ms = clock_mono_ms();
	link_progress(k, 30, "suspending: detaching the workspaces");
	if (!k->has_share) {
		wait_for_clients(k);
		return;
	}
	k->suspend->step = SUSPEND_DETACHING;
	r = vmm_detach_share(k->vmm);
	if (r < 0)
		fail_suspend(k, strerror(-r));
}

static int begin_save(struct keeper *k, struct err *err)
{
	AUTO_FREE char *path = NULL;
	int fd, r;

	r = start_image_key(k, k->suspend->file.key, err);
	if (r == 0)
		r = suspend_file_begin(k->dir, &path, err);
	if (r == 0)
		r = image_save_begin(path, vmm_memory_fd(k->vmm), k->suspend->is_checkpoint,
			&k->suspend->save, &fd, err);
	if (r < 0)
		return r;
	r = loop_add(&k->loop, k->suspend->save.pidfd, EPOLLIN,
		(struct loop_key){.kind = EV_SUSPEND_SAVED, .gen = ++k->save_gen});
	if (r < 0) {
		fd_close(&fd);
		return err_errno(err, r, "cannot watch the process that writes the snapshot");
	}
	loop_timer_set(&k->loop, &k->suspend->timer, clock_mono_ms() + IMAGE_CHILD_MS, timer_key);
	k->suspend->is_paused = true;
	r = vmm_save(k->vmm, fd);
	machine_on_qmp(k); /* sets its timer */
	return r < 0 ? err_errno(err, r, "cannot request QEMU to save") : 0;
}

/* The layers of a checkpoint are made first, of the instant at which the VM is paused. */
static int begin_layers(struct keeper *k, struct err *err)
{
	int r = vmm_pause(k->vmm);

	k->suspend->is_paused = true;
	if (r < 0)
		return err_errno(err, r, "cannot request QEMU to pause");
	freeze_make_layers(k);
	return 0;
}

void suspend_on_layers(struct keeper *k, int code, const char *text)
{
	struct err err = {0};
	int r;

	if (k->suspend->step != SUSPEND_SAVING)
		return;
	r = code < 0 ? err_set(&err, code, "%s", text) : begin_save(k, &err);
	if (r < 0)
		fail_suspend(k, err_text(&err, r));
}

/* No process uses the guest any more. */
static void take_memory(struct keeper *k)
{
	struct err err = {0};
	int r = check_room(k, &err);

	if (r == 0 && k->suspend->is_checkpoint && (origins_are_busy(k) || clerks_are_busy(k)))
		r = err_set(&err, -EAGAIN, "%s", in_flight);
	if (r < 0 || k->suspend->is_cancelled) {
		start_stop_share(k); /* detached: the VM gets a new one */
		fail_suspend(k, r < 0 ? err_text(&err, r) : "the host's disk was full");
		return;
	}
	edge_kill(k);
	clerks_kill_all(k, "the sandbox is being suspended");
	origins_kill_all(k, "the sandbox is being suspended");
	egress_kill(k);
	ssh_agent_kill(k);
	start_stop_share(k);
	link_progress(k, 50, "suspending: writing the snapshot");
	k->suspend->step = SUSPEND_SAVING;
	k->suspend->n_saved = 0;
	r = k->suspend->is_checkpoint ? begin_layers(k, &err) : begin_save(k, &err);
	if (r < 0)
		fail_suspend(k, err_text(&err, r));
}

/* The VM can still continue: no later step needs disk space. */
static int prepare_file(struct keeper *k, struct err *err)
{
	struct suspend_file *f = &k->suspend->file;
	int r = suspend_file_stamp(k->dir, f, err);

	f->at_ms = clock_wall_ms();
	f->by = k->suspend->by;
	f->has_ca = k->trust->has_ca;
	f->ca = k->trust->ca;
	if (r == 0)
		r = suspend_file_prepare(k->dir, f, err);
	suspend_file_wipe(f);
	return r;
}

/* Counts the reports of success, of qemu and of the child. */
static void note_saved(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (++k->suspend->n_saved < 2)
		return;
	loop_timer_clear(&k->loop, &k->suspend->timer);
	r = k->suspend->is_checkpoint ? point_keep(k, &err) : prepare_file(k, &err);
	if (r < 0) {
		fail_suspend(k, err_text(&err, r));
		return;
	}
	if (k->suspend->is_checkpoint) {
		go_on(k);
		return;
	}
	k->suspend->step = SUSPEND_QUITTING;
	link_progress(k, 90, "suspending: stopping the VM");
	if (vmm_quit(k->vmm) < 0)
		vmm_kill(k->vmm);
	machine_on_qmp(k);
}

void suspend_on_saved(struct keeper *k)
{
	struct err err = {0};
	int r;

	loop_del(&k->loop, k->suspend->save.pidfd);
	r = image_save_end(&k->suspend->save, k->suspend->file.saved, &err);
	if (k->suspend->step != SUSPEND_SAVING)
		return;
	if (r < 0)
		fail_suspend(k, err_text(&err, r));
	else
		note_saved(k);
}

/* The VM cannot continue after a save: the sandbox boots now, not when the timeout expires. */
static void wake_refused(struct keeper *k, const char *why)
{
	char text[KEEPER_MAX_TEXT];

	(void)snprintf(text, sizeof(text),
		"QEMU cannot continue the VM after saving it, and the sandbox restarts: %s", why);
	log_error("%s", text);
	freeze_end(k, -EIO, text);
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms(),
		(struct loop_key){.kind = EV_TIMER_BOOT});
}

bool suspend_on_vmm(struct keeper *k, const struct vmm_event *ev)
{
	bool detaching = k->suspend->step == SUSPEND_DETACHING;
	bool saving = k->suspend->step == SUSPEND_SAVING;

	if (ev->kind == VMM_EV_SHARE_DETACHED && detaching)
		wait_for_clients(k);
	else if (ev->kind == VMM_EV_SAVED && saving)
		note_saved(k);
	else if ((ev->kind == VMM_EV_SHARE_DETACH_FAILED && detaching) ||
		 (ev->kind == VMM_EV_SAVE_FAILED && saving))
		fail_suspend(k, ev->text);
	else if (ev->kind == VMM_EV_REFUSED && k->suspend->is_undone)
		wake_refused(k, ev->text);
	else
		return false;
	return true;
}

void suspend_on_timer(struct keeper *k)
{
	if (k->suspend->step == SUSPEND_LINGERING)
		take_memory(k);
	else if (k->suspend->step == SUSPEND_SAVING)
		fail_suspend(k, "timed out writing the snapshot");
	else if (k->suspend->is_waking && edge_is_up(k))
		k->life->ready(k);
}

/* Not undone here: a guest that is parking cannot be woken yet. If the VM is already being saved,
 * the save fails or completes. */
void suspend_on_full(struct keeper *k)
{
	bool can_wait = k->suspend->step == SUSPEND_PARKING ||
			k->suspend->step == SUSPEND_DETACHING ||
			k->suspend->step == SUSPEND_LINGERING;
	char text[KEEPER_MAX_TEXT];

	if (!can_wait || k->suspend->is_cancelled)
		return;
	k->suspend->is_cancelled = true;
	(void)snprintf(text, sizeof(text),
		"not %s: disk full; the sandbox is paused and continues when the host has free disk space again",
		k->suspend->is_checkpoint ? "saved" : "suspended");
	answer_suspend(k, -ENOSPC, text);
}

void suspend_on_share_end(struct keeper *k)
{
	k->suspend->is_share_lost = k->suspend->step != SUSPEND_NONE;
}

void suspend_forget_wake(struct keeper *k)
{
	const char *why =
		!k->suspend->is_undone ? "the restored programs did not respond within the timeout"
		: k->suspend->is_checkpoint
			? "the programs did not respond after the checkpoint: the sandbox restarts"
			: "the programs did not respond after a failed suspension";

	if (!k->suspend->is_waking)
		return;
	freeze_end(k, -EIO, why);
	k->suspend->is_waking = k->suspend->is_undone = k->suspend->is_share_due = false;
	loop_timer_clear(&k->loop, &k->suspend->timer);
	warm_boot_instead(k, why);
	record_life(k, "resume-refused", why);
}

/* qemu has exited, so the disks are final: the snapshot gets its name. */
static int publish_snapshot(struct keeper *k, struct err *err)
{
	int r = suspend_file_stamp(k->dir, &k->suspend->file, err);

	return r < 0 ? r : suspend_file_publish(k->dir, &k->suspend->file, err);
}

bool suspend_on_qemu_end(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->suspend->step == SUSPEND_NONE)
		return false;
	if (k->suspend->step != SUSPEND_QUITTING) {
		k->suspend->step = SUSPEND_NONE;
		drop_save(k);
		suspend_file_tidy(k->dir);
		answer_suspend(k, -EIO,
			"QEMU exited while the sandbox was being suspended: see keeper.log");
		k->life->finish(
			k, "QEMU exited while the sandbox was being suspended: see keeper.log");
		return true;
	}
	k->suspend->step = SUSPEND_NONE;
	r = publish_snapshot(k, &err);
	if (r < 0) {
		suspend_file_tidy(k->dir);
		answer_suspend(k, r, err_text(&err, r));
		k->life->finish(k, err_text(&err, r));
		return true;
	}
	k->state.suspended = true;
	record_life(k, "suspend",
		strcmp(k->suspend->by, SUSPEND_BY_REQUEST) == 0 ? "" : k->suspend->by);
	answer_suspend(k, 0, "");
	k->life->finish(k, "");
	return true;
}

void suspend_drop(struct keeper *k)
{
	if (k->suspend->step == SUSPEND_NONE) {
		freeze_end(k, 0, ""); /* the checkpoint exists */
		return;
	}
	k->suspend->step = SUSPEND_NONE;
	drop_save(k);
	suspend_file_tidy(k->dir);
	if (k->suspend->link >= 0 || k->suspend->is_checkpoint)
		answer_suspend(k, -EIO, "the sandbox was stopped while it was being saved");
}

/* ---- wake ---- */

static void on_woken(struct keeper *k, const struct guest_reply *reply)
{
	char why[KEEPER_MAX_TEXT + 64];

	/* If edge exited meanwhile, the READY of the next edge sends /wake again. */
	if (k->state.phase != KEEPER_STARTING || !edge_is_alive(k))
		return;
	if (!reply->ok && k->suspend->is_undone) {
		/* Still parking, on a slow disk: boot_timer limits the retries. */
		log_warn("cannot wake the programs of the sandbox yet: %s", reply->text);
		loop_timer_set(&k->loop, &k->suspend->timer, clock_mono_ms() + KEEPER_WAKE_AGAIN_MS,
			timer_key);
		return;
	}
	if (!reply->ok) {
		(void)snprintf(why, sizeof(why), "cannot wake the programs of the sandbox: %s",
			reply->text);
		k->life->stop(k, KEEPER_STOP_MS, why);
		return;
	}
	if (reply->text[0]) {
		log_warn("woken: %s", reply->text);
		record_life(k, "wake", reply->text);
	}
	(void)snprintf(k->suspend->lost, sizeof(k->suspend->lost), "%s", reply->text);
	k->suspend->is_waking = k->suspend->is_undone = false;
	freeze_end(k, 0, "");
	k->life->ready(k); /* /setup: name and variables may have changed */
}

static const struct ask_kind wake_ask = {GUEST_PATH_WAKE, .on_reply = on_woken, .is_patient = true};

int suspend_send_wake(struct keeper *k, struct err *err)
{
	static uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_mount mounts[GUEST_MAX_MOUNTS];
	struct guest_wake wake = {.wall_ms = clock_wall_ms(), .mounts = {0, mounts}};
	int r;

	wake.mounts.n = start_fill_mounts(k, mounts);
	if (getrandom(wake.entropy, sizeof(wake.entropy), 0) != (ssize_t)sizeof(wake.entropy))
		return err_errno(err, -errno, "cannot get random numbers");
	r = guest_put_wake(&wr, &wake);
	if (r < 0)
		return err_errno(err, r, "cannot encode the wake request");
	link_progress(k, 90, "waking the programs");
	return ask_guest(k, &wake_ask, slice_of(buf, wr.n), KEEPER_WAKE_MS, -1, 0);
}
