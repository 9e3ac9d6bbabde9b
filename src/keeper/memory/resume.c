/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume - restores a suspended sandbox.
 *
 * How      A child checks the hash of the file while qemu starts; qemu reads only a complete file.
 *          The VM is paused then. Before it runs, the directory is renamed: the disks change from
 *          then on and the snapshot no longer fits them. Then share, edge and /wake. A snapshot
 *          that can never be used (corrupt, of another VM, of other disks, or refused by qemu) is
 *          put aside, and the sandbox boots from the disks as after a power failure; cold_why has
 *          the reason. Any other failure before the VM runs ends the start and keeps the snapshot.
 * Trust    See suspend_file.h.
 * Owns     The child that reads.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

void resume_drop(struct keeper *k)
{
	if (k->plan != START_RESUME)
		return;
	if (k->suspend->check.pidfd >= 0)
		loop_del(&k->loop, k->suspend->check.pidfd);
	image_check_done(&k->suspend->check);
	suspend_file_wipe(&k->suspend->file);
	k->plan = START_COLD;
	k->restore_fd = NULL;
}

static void give_up(struct keeper *k, const char *why)
{
	log_error("the snapshot of the suspended sandbox is not used: %s", why);
	record_begin(k);
	record_life(k, "resume-refused", why);
	resume_drop(k);
	warm_boot_instead(k, why);
	k->suspend->is_waking = false;
	suspend_file_refuse(k->dir);
}

static bool is_under_way(const struct keeper *k)
{
	return (k->plan == START_RESUME || k->suspend->is_used) &&
	       k->state.phase == KEEPER_STARTING;
}

static void refuse_memory(struct keeper *k, const char *why)
{
	if (!is_under_way(k))
		return;
	give_up(k, why);
	k->life->boot(k);
}

/* The snapshot may be good: the next start can use it. */
static int say_kept(const struct keeper *k, int r, struct err *err)
{
	struct err why = *err;

	return err_set(err, r,
		"%.*s; the snapshot is kept: start the sandbox again, or discard the snapshot with sbx start --cold %s",
		ERR_MAX_TEXT - 256, err_text(&why, r), k->spec.name);
}

static void keep_memory(struct keeper *k, int r, struct err *err)
{
	(void)say_kept(k, r, err);
	k->life->stop(k, 0, err->text);
}

bool resume_on_failure(struct keeper *k, const char *why)
{
	struct err err = {0};

	if (!is_under_way(k))
		return false;
	suspend_file_put_back(k->dir);
	k->suspend->is_used = false;
	keep_memory(k, err_set(&err, -EIO, "%s", why), &err);
	return true;
}

static int begin_check(struct keeper *k, struct err *err)
{
	AUTO_FREE char *dir = xasprintf("%s/" SUSPEND_DIR, k->dir);
	struct image_check *c = &k->suspend->check;
	int r = image_check_open(
		dir, k->suspend->file.format, k->suspend->file.saved, k->memory_dir, c, err);

	if (r == -ENOENT || r == -ELOOP)
		return err_set(err, -EUCLEAN, "a file of the snapshot is missing");
	if (r == 0)
		r = image_check_begin(c, k->suspend->file.saved, err);
	if (r < 0)
		return r;
	return loop_add(&k->loop, k->suspend->check.pidfd, EPOLLIN,
		(struct loop_key){.kind = EV_SUSPEND_CHECKED, .gen = ++k->check_gen});
}

/* edge continues with the CA that the programs have read. */
static void take_ca(struct keeper *k)
{
	if (!k->suspend->file.has_ca)
		return;
	k->trust->ca = k->suspend->file.ca;
	k->trust->has_ca = true;
	suspend_file_wipe(&k->suspend->file);
}

static int begin_restore(struct keeper *k, struct err *err)
{
	int r = begin_check(k, err);

	if (r == 0)
		r = start_port(k, err);
	if (r == 0)
		r = start_qemu(k, err);
	if (r == 0)
		r = k->life->network(k, err);
	return r;
}

static int begin_if_good(struct keeper *k, struct err *err)
{
	char key[IMAGE_KEY_LEN + 1];
	int r = start_image_key(k, key, err);

	if (r == 0)
		r = suspend_file_open(k->dir, key, &k->suspend->file, err);
	if (r < 0)
		return r;
	k->restore_fd = &k->suspend->check.memory_fd;
	k->suspend->is_checked = k->suspend->is_ready = false;
	return begin_restore(k, err);
}

int resume_begin(struct keeper *k, struct err *err)
{
	int r;

	link_progress(k, 8, "reading the snapshot");
	r = begin_if_good(k, err);
	if (r == -EUCLEAN) {
		give_up(k, err_text(err, r));
		*err = (struct err){0};
		k->life->undo(k);
		return 0;
	}
	if (r < 0)
		return say_kept(k, r, err);
	take_ca(k);
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms() + VMM_SAVE_MS,
		(struct loop_key){.kind = EV_TIMER_BOOT});
	return 1;
}

static void restore_when_due(struct keeper *k)
{
	int r;

	if (!k->suspend->is_checked || !k->suspend->is_ready)
		return;
	link_progress(k, 50, "restoring the memory");
	r = vmm_restore(k->vmm, TAKE_FD(k->suspend->check.fd));
	if (r < 0)
		(void)resume_on_failure(k, strerror(-r));
	else
		machine_on_qmp(k);
}

void resume_on_checked(struct keeper *k)
{
	struct err err = {0};
	int r;

	loop_del(&k->loop, k->suspend->check.pidfd);
	r = image_check_end(&k->suspend->check, &err);
	if (k->plan != START_RESUME)
		return;
	if (r == -EUCLEAN) {
		refuse_memory(k, err_text(&err, r));
		return;
	}
	if (r < 0) {
		(void)resume_on_failure(k, err_text(&err, r));
		return;
	}
	k->suspend->is_checked = true;
	restore_when_due(k);
}

/* The steps that can fail come first: until the VM runs, the snapshot can be kept for the next
 * start. The share is one of them (a workspace may be a symlink now). */
static int let_go(struct keeper *k, struct err *err)
{
	int r = suspend_give_share(k, err);

	if (r == 0)
		r = edge_start(k, err);
	if (r < 0)
		return r;
	r = suspend_file_consume(k->dir, err);
	if (r == 0)
		r = vmm_resume(k->vmm);
	if (r < 0)
		suspend_file_put_back(k->dir);
	return r;
}

/* qemu has yet to confirm that the VM runs. */
static void on_restored(struct keeper *k)
{
	struct err err = {0};
	int r;

	link_progress(k, 80, "attaching the workspaces");
	k->suspend->is_waking = true;
	resume_drop(k);
	k->state.how = KEEPER_HOW_RESUMED;
	k->state.cold_why[0] = '\0';
	r = let_go(k, &err);
	if (r < 0) {
		keep_memory(k, r, &err);
		return;
	}
	k->suspend->is_used = true;
	k->life->give_time(k); /* for the programs, however long the reading took */
	machine_on_qmp(k);
}

bool resume_on_vmm(struct keeper *k, const struct vmm_event *ev)
{
	bool is_restoring = k->plan == START_RESUME;

	if (is_restoring && ev->kind == VMM_EV_READY) {
		k->suspend->is_ready = true;
		restore_when_due(k);
	} else if (is_restoring && ev->kind == VMM_EV_RESTORED) {
		on_restored(k);
	} else if (is_restoring && ev->kind == VMM_EV_RESTORE_FAILED) {
		refuse_memory(k, "QEMU cannot read the snapshot");
	} else if (k->suspend->is_used && ev->kind == VMM_EV_RESUMED) {
		k->suspend->is_used = false;
		suspend_file_tidy(k->dir); /* on a full disk the guest gets that space */
	} else if (k->suspend->is_used && ev->kind == VMM_EV_REFUSED) {
		(void)resume_on_failure(k, ev->text);
	} else if (k->suspend->is_waking && ev->kind == VMM_EV_SHARE_ATTACHED) {
		k->suspend->is_share_due = false;
		if (edge_is_up(k))
			k->life->ready(k);
	} else if (k->suspend->is_waking && ev->kind == VMM_EV_SHARE_FAILED) {
		k->life->stop(k, 0, "cannot attach the workspaces: see keeper.log");
	} else {
		return false;
	}
	return true;
}
