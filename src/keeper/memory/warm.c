/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static const enum template_disk disk_of[] = {
	[IMAGE_ROOT] = TEMPLATE_ROOT, [IMAGE_DOCKER] = TEMPLATE_DOCKER};

void warm_init(struct keeper *k)
{
	k->warm->check = (struct image_check)IMAGE_CHECK_EMPTY;
	k->warm->save = (struct image_save)IMAGE_SAVE_EMPTY;
	k->warm->draft = (struct image_draft)IMAGE_DRAFT_EMPTY;
}

void warm_mark(const struct keeper *k, const char *what)
{
	log_info("%4u ms: %s", (unsigned)(clock_mono_ms() - k->started_ms), what);
}

bool warm_is_on(const struct keeper *k)
{
	return k->plan == START_WARM || k->plan == START_POOL;
}

void warm_boot_instead(struct keeper *k, const char *why)
{
	(void)snprintf(k->state.cold_why, sizeof(k->state.cold_why), "%s", why);
	log_info("cold start: %s", k->state.cold_why);
	if (k->plan != START_POOL)
		k->plan = START_COLD;
	k->restore_fd = NULL;
	k->state.how = KEEPER_HOW_COLD;
	image_done(&k->warm->image);
}

const char *warm_open(struct keeper *k, char *why, size_t n)
{
	struct err err = {0};
	char size[32];
	int r = start_image_key(k, k->image_key, &err);

	if (r == 0)
		r = image_open(k->image_key, &k->warm->image, &err);
	if (r == 0) {
		k->restore_fd = &k->warm->check.memory_fd;
		k->state.how = KEEPER_HOW_WARM;
		return NULL;
	}
	str_from_size(k->spec.memory, size, sizeof(size));
	if (r == -EUCLEAN)
		image_remove(k->image_key);
	if (r == -ENOENT)
		(void)snprintf(why, n, "no snapshot of %s for %u CPUs and %s yet", k->spec.template,
			k->spec.cpus, size);
	else
		(void)snprintf(why, n, "%s", err_text(&err, r));
	return why;
}

void warm_remove_disks(const struct keeper *k)
{
	for (enum image_part i = IMAGE_ROOT; i < IMAGE_N_PARTS; i++) {
		AUTO_FREE char *top = layers_path(k->dir, disk_of[i], 0);

		(void)unlink(top);
	}
}

void warm_take_disks(struct keeper *k)
{
	struct err err = {0};
	int r = 0;

	for (enum image_part i = IMAGE_ROOT; r == 0 && i < IMAGE_N_PARTS; i++) {
		AUTO_FREE char *top = layers_path(k->dir, disk_of[i], 0);

		r = image_copy_disk(&k->warm->image, i, top, &err);
	}
	if (r == 0) {
		warm_mark(k, "the disks of the snapshot are copied");
		return;
	}
	warm_remove_disks(k);
	if (r == -EUCLEAN)
		image_remove(k->image_key);
	warm_boot_instead(k, err_text(&err, r));
}

static int begin_check(struct keeper *k, struct err *err)
{
	int r = image_check_begin(&k->warm->check, k->warm->image.files, err);

	if (r < 0)
		return r;
	r = loop_add(&k->loop, k->warm->check.pidfd, EPOLLIN,
		(struct loop_key){.kind = EV_IMAGE, .gen = ++k->image_gen});
	return r < 0 ? err_errno(err, r, "cannot watch the check of the snapshot") : 0;
}

int warm_check(struct keeper *k, struct err *err)
{
	struct image_check *c = &k->warm->check;
	int r = image_check_open(
		k->warm->image.dir, IMAGE_FORMAT, k->warm->image.files, k->memory_dir, c, err);

	return r < 0 || k->plan == START_POOL ? r : begin_check(k, err);
}

/* Starts the other processes while the child reads. */
static void start_rest(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->warm->is_rest_started)
		return;
	k->warm->is_rest_started = true;
	r = k->life->helpers(k, &err);
	if (r < 0)
		k->life->stop(k, 0, err_text(&err, r));
}

int warm_begin(struct keeper *k, struct err *err)
{
	int r = begin_check(k, err);

	fd_close(&k->warm->check.memory_fd);
	if (r == 0)
		start_rest(k);
	return r;
}

/* The share first: the guest needs it as soon as it runs. */
static void let_run(struct keeper *k)
{
	int r = 0;

	k->warm->step = WARM_RUNNING;
	if (k->has_share)
		r = vmm_attach_share(k->vmm, TAKE_FD(k->share.vhost_fd));
	if (r == 0)
		r = vmm_resume(k->vmm);
	if (r < 0)
		warm_fail(k, strerror(-r));
}

/* Devices read the memory when they are restored: it must be complete before. */
static void restore_when_due(struct keeper *k)
{
	int r;

	if (k->warm->step != WARM_WAITING || !k->warm->is_checked || !k->warm->is_ready ||
		k->state.phase != KEEPER_STARTING || k->warm->failed[0])
		return;
	k->warm->step = WARM_RESTORING;
	r = vmm_restore(k->vmm, TAKE_FD(k->warm->check.fd));
	if (r < 0)
		warm_fail(k, strerror(-r));
}

void warm_on_child(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->plan == START_MAKE) {
		make_on_child(k);
		return;
	}
	loop_del(&k->loop, k->warm->check.pidfd);
	r = image_check_end(&k->warm->check, &err);
	if (r < 0) {
		if (r == -EUCLEAN)
			hands_drop_image(k);
		warm_fail(k, err_text(&err, r));
		return;
	}
	warm_mark(k, "the snapshot is verified");
	k->warm->is_checked = true;
	restore_when_due(k);
	machine_on_qmp(k); /* sets its timer */
}

bool warm_on_vmm(struct keeper *k, const struct vmm_event *ev)
{
	if (k->plan == START_MAKE)
		return make_on_vmm(k, ev);
	if (!warm_is_on(k))
		return false;
	switch (ev->kind) {
	case VMM_EV_READY:
		warm_mark(k, "qemu is ready");
		k->warm->is_ready = true;
		if (k->plan == START_POOL) {
			pool_on_ready(k);
			return true;
		}
		restore_when_due(k);
		start_rest(k);
		return true;
	case VMM_EV_RESTORED:
		warm_mark(k, "restored");
		k->warm->is_restored = true;
		if (k->warm->step == WARM_RESTORING && k->state.phase == KEEPER_STARTING &&
			!k->warm->failed[0])
			let_run(k);
		return true;
	case VMM_EV_RESUMED:
		warm_mark(k, "the guest runs");
		link_progress(k, 60, "the guest is running");
		return true;
	case VMM_EV_SHARE_ATTACHED:
		warm_mark(k, "the share is plugged in");
		k->warm->is_share_there = true;
		if (k->warm->is_edge_ready)
			k->life->ready(k);
		return true;
	case VMM_EV_RESTORE_FAILED:
		hands_drop_image(k);
		warm_fail(k, ev->text);
		return true;
	case VMM_EV_SHARE_FAILED:
		warm_fail(k, ev->text);
		return true;
	default:
		return false;
	}
}

bool warm_holds_setup(struct keeper *k)
{
	if (!warm_is_on(k))
		return false;
	if (!k->warm->is_edge_ready)
		warm_mark(k, "the guest answers");
	k->warm->is_edge_ready = true;
	trust_send_early(k);
	return k->has_share && !k->warm->is_share_there;
}

void warm_fail(struct keeper *k, const char *why)
{
	if (!warm_is_on(k) || k->state.phase != KEEPER_STARTING || k->warm->failed[0])
		return;
	(void)snprintf(k->warm->failed, sizeof(k->warm->failed), "%s", why);
	/* From the loop: the caller still uses the state that is undone. */
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms(),
		(struct loop_key){.kind = EV_TIMER_BOOT});
}

/* A snapshot that made qemu exit must not be used again. */
void warm_on_qemu_end(struct keeper *k)
{
	if (k->warm->step == WARM_RESTORING && !k->warm->is_restored)
		hands_drop_image(k);
	warm_fail(k, "QEMU exited while it restored the snapshot");
}

void warm_undo(struct keeper *k)
{
	if (k->warm->check.pidfd >= 0)
		loop_del(&k->loop, k->warm->check.pidfd);
	image_check_done(&k->warm->check);
	k->warm->is_checked = k->warm->is_ready = k->warm->is_restored = false;
	k->warm->is_rest_started = false;
	k->warm->is_share_there = k->warm->is_edge_ready = false;
}

void warm_fall_back(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->plan == START_POOL) {
		k->life->stop(k, 0,
			k->warm->failed[0] ? k->warm->failed : "timed out restoring the snapshot");
		return;
	}
	k->life->undo(k);
	warm_remove_disks(k);
	warm_boot_instead(k, k->warm->failed[0]
				     ? k->warm->failed
				     : "the restored guest did not respond within the timeout");
	k->boot_tries = 0;
	r = disks_open(k->disks, k->dir, &err);
	if (r == 0)
		r = k->life->machine(k, &err);
	if (r < 0)
		k->life->stop(k, 0, err_text(&err, r));
}

void warm_finish(struct keeper *k)
{
	if (!warm_is_on(k))
		return;
	k->plan = START_COLD; /* of another start of this VM */
	k->restore_fd = NULL;
	image_done(&k->warm->image);
}
