/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_make - `sbx-keeper --make-image`: creates a snapshot of a template for one class of VMs.
 *
 * How      Boots a VM with the disks of a draft (lib/vm/vmm/image/image.h), without a share, a
 *          network and /setup. /park prepares the guest; edge exits, and the guest sees that; free
 *          memory returns to the host; qemu writes the rest through a child that compresses it;
 *          the draft gets its final name. Prints its progress to stdout as `PERCENT TEXT` lines.
 * Trust    As the keeper's. The snapshot contains what the template and PID 1 put into memory,
 *          nothing else.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define EXIT_BUSY 75 /* the snapshot is already being created */
#define NICE 10

static void print_progress(struct keeper *k, unsigned percent, const char *text)
{
	printf("%u %s\n", percent, text);
	(void)fflush(stdout);
	log_info("%s", text);
}

static void end_loop(struct keeper *k, int code)
{
	k->warm->exit_code = code;
	k->over = true;
}

void make_fail(struct keeper *k, const char *why)
{
	if (k->over)
		return;
	log_error("cannot create the snapshot: %s", why);
	printf("error %s\n", why);
	end_loop(k, 1);
}

/* ---- the guest ---- */

static void set_timer(struct keeper *k, uint64_t ms)
{
	loop_timer_set(&k->loop, &k->warm->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = EV_TIMER_MAKE});
}

static void on_parked(struct keeper *k, const struct guest_reply *reply)
{
	if (k->warm->make_step != MAKE_BOOTING || !edge_is_alive(k))
		return;
	if (!reply->ok && ++k->warm->park_tries < KEEPER_PARK_TRIES) {
		set_timer(k, KEEPER_PARK_GAP_MS);
		return;
	}
	if (!reply->ok) {
		make_fail(k, reply->text);
		return;
	}
	/* The guest must see the end of edge, or its half of a session would be in the snapshot. */
	k->warm->make_step = MAKE_PARKED;
	edge_kill(k);
	print_progress(k, 70, "returning free memory to the host");
	set_timer(k, KEEPER_SETTLE_MS);
}

static const struct ask_kind park_ask = {GUEST_PATH_PARK, .on_reply = on_parked};

static void ask_park(struct keeper *k)
{
	uint8_t buf[16];
	struct guest_parking parking = {GUEST_PARK_IMAGE, getuid(), getgid()};
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = guest_put_park(&wr, &parking);

	if (r == 0)
		r = ask_guest(k, &park_ask, slice_of(buf, wr.n), KEEPER_SETUP_MS, -1, 0);
	if (r < 0)
		make_fail(k, "cannot send a request to the guest");
}

void make_on_ready(struct keeper *k)
{
	if (k->warm->make_step != MAKE_BOOTING)
		return;
	loop_timer_clear(&k->loop, &k->boot_timer);
	print_progress(k, 60, "preparing the guest");
	ask_park(k);
}

/* ---- the snapshot ---- */

static int begin_save(struct keeper *k, struct err *err)
{
	int fd, r = image_save_begin(
			k->warm->draft.dir, vmm_memory_fd(k->vmm), false, &k->warm->save, &fd, err);

	if (r < 0)
		return r;
	r = loop_add(&k->loop, k->warm->save.pidfd, EPOLLIN,
		(struct loop_key){.kind = EV_IMAGE, .gen = ++k->image_gen});
	if (r < 0) {
		fd_close(&fd);
		return err_errno(err, r, "cannot watch the process that writes the snapshot");
	}
	r = vmm_save(k->vmm, fd);
	machine_on_qmp(k);
	return r < 0 ? err_errno(err, r, "cannot request QEMU to save") : 0;
}

void make_on_timer(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->warm->make_step == MAKE_BOOTING) {
		ask_park(k);
		return;
	}
	if (k->warm->make_step != MAKE_PARKED)
		return;
	print_progress(k, 80, "writing the snapshot");
	k->warm->make_step = MAKE_SAVING;
	r = begin_save(k, &err);
	if (r < 0)
		make_fail(k, err_text(&err, r));
}

bool make_on_vmm(struct keeper *k, const struct vmm_event *ev)
{
	switch (ev->kind) {
	case VMM_EV_SAVED:
		k->warm->make_step = MAKE_SAVED;
		if (vmm_quit(k->vmm) < 0)
			vmm_kill(k->vmm);
		return true;
	case VMM_EV_SAVE_FAILED:
		make_fail(k, ev->text);
		return true;
	case VMM_EV_DISK_FULL: /* this VM is never resumed */
		make_fail(k, "the host's disk is full");
		return true;
	default:
		return false;
	}
}

static bool is_template(void *arg, const char *id)
{
	return template_exists(id);
}

/* Disk space of the snapshot's memory. */
static uint64_t used_bytes(const struct keeper *k)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "warm/%s/memory", k->warm->draft.key);
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

int make_publish(struct keeper *k, struct err *err)
{
	int r = image_publish(&k->warm->draft, err);

	if (r == 0)
		image_collect(is_template, NULL);
	return r;
}

static void publish_image(struct keeper *k)
{
	struct image_class class = {.template_id = k->disks->template.id, .initrd = k->initrd};
	struct err err = {0};
	int r = image_finish(&k->warm->draft, &class, k->warm->saved, &err);

	if (r == 0)
		r = hands_publish(k, &err);
	if (r < 0) {
		make_fail(k, err_text(&err, r));
		return;
	}
	printf("size %llu\n", (unsigned long long)used_bytes(k));
	print_progress(k, 100, "the snapshot is complete");
	end_loop(k, 0);
}

/* Both must have exited: the child that compresses, and qemu, which writes to the disks. */
static void publish_when_both(struct keeper *k)
{
	if (k->warm->is_packed && !k->vmm)
		publish_image(k);
}

void make_on_child(struct keeper *k)
{
	struct err err = {0};
	int r;

	loop_del(&k->loop, k->warm->save.pidfd);
	r = image_save_end(&k->warm->save, k->warm->saved, &err);
	if (r < 0) {
		make_fail(k, err_text(&err, r));
		return;
	}
	k->warm->is_packed = true;
	publish_when_both(k);
}

void make_on_qemu_end(struct keeper *k)
{
	bool good = k->warm->make_step == MAKE_SAVED;

	k->life->undo(k);
	if (good)
		publish_when_both(k);
	else
		make_fail(k, "QEMU exited while the guest was booting: see the log");
}

/* ---- begin ---- */

static int fill_spec(struct keeper *k, const struct make_options *o, struct err *err)
{
	struct spec *s = &k->spec;
	uint64_t cpus = 0, memory = 0;

	str_random_hex(s->id, SPEC_ID_LEN / 2);
	if (str_copy(s->name, sizeof(s->name), "image") < 0 ||
		str_copy(s->template, sizeof(s->template), o->template ? o->template : "") < 0)
		return err_set(err, -EINVAL, "the template's name is too long");
	if (o->cpus && str_to_u64(o->cpus, 1, VMM_MAX_CPUS, &cpus) < 0)
		return err_set(err, -EINVAL, "invalid number of CPUs '%.20s'", o->cpus);
	if (o->memory && str_to_u64(o->memory, SPEC_MIN_MEMORY, SPEC_MAX_MEMORY, &memory) < 0)
		return err_set(err, -EINVAL, "invalid memory size '%.20s'", o->memory);
	if (o->disk && strcmp(o->disk, "0") != 0 &&
		str_to_u64(o->disk, SPEC_MIN_DISK, SPEC_MAX_DISK, &s->disk) < 0)
		return err_set(err, -EINVAL, "invalid disk size '%.20s'", o->disk);
	if (o->accel && spec_accel_parse(o->accel, &s->accel) < 0)
		return err_set(err, -EINVAL, "invalid accelerator '%.20s'", o->accel);
	spec_set_defaults(s, (uint32_t)cpus, memory);
	return 0;
}

static int begin_make(struct keeper *k, struct err *err)
{
	int r = start_selftest(k, err);

	if (r == 0)
		r = start_image_key(k, k->image_key, err);
	if (r < 0)
		return r;
	if (image_open(k->image_key, &k->warm->image, err) == 0)
		return 1;
	r = image_draft_begin(k->image_key, &k->warm->draft, err);
	if (r < 0)
		return r;
	k->dir = xstrdup(k->warm->draft.dir);
	k->run_dir = paths_get(PATHS_RUNTIME, "s/%s", k->spec.id);
	r = paths_make(k->run_dir, err);
	if (r == 0)
		r = disks_open(k->disks, k->dir, err);
	if (r == 0)
		r = hands_start(k, err);
	if (r == 0)
		r = hands_seal(k, err);
	return r < 0 ? r : k->life->machine(k, err);
}

static void run_loop(struct keeper *k)
{
	uint64_t last = clock_mono_ms() + KEEPER_MAKE_MS;

	while (!k->over) {
		struct loop_event ev;

		loop_next(&k->loop, &ev);
		if (clock_mono_ms() > last)
			make_fail(k, "timed out");
		else
			k->life->dispatch(k, &ev);
	}
}

static void clean_draft(struct keeper *k)
{
	k->life->undo(k);
	image_save_done(&k->warm->save);
	if (k->run_dir)
		hands_leave(k);
	image_draft_done(&k->warm->draft); /* its lock last */
}

int make_main(struct keeper *k, const struct make_options *o)
{
	struct err err = {0};
	int r = fill_spec(k, o, &err);

	k->plan = START_MAKE;
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	if (r == 0) {
		print_progress(k, 5, "booting a VM for the snapshot");
		r = begin_make(k, &err);
	}
	if (r > 0)
		print_progress(k, 100, "the snapshot already exists");
	else if (r < 0)
		make_fail(k, err_text(&err, r));
	if (r == -EBUSY)
		k->warm->exit_code = EXIT_BUSY;
	if (r == 0)
		run_loop(k);
	clean_draft(k);
	return k->warm->exit_code;
}
