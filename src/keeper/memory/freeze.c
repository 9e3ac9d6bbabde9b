/* SPDX-License-Identifier: Apache-2.0 */
#include "freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "memory.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/vm/vmm/disk.h"

static char *next_file(const struct keeper *k, enum template_disk disk)
{
	return xasprintf("%s/%s.next.qcow2", k->dir, template_disk_name(disk));
}

static void finish_freeze(struct keeper *k)
{
	struct freeze *f = k->freeze;
	struct keeper_frozen frozen = {.code = f->code,
		.seq = f->seq,
		.pause_ms = (uint32_t)(clock_mono_ms() - f->asked_ms)};
	struct link *l = f->link >= 0 ? &k->links[f->link] : NULL;

	f->state = FREEZE_IDLE;
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *left = next_file(k, (enum template_disk)i);

		(void)unlink(left);
		frozen.layers[i] = (uint16_t)k->disks->last[i];
	}
	(void)snprintf(frozen.text, sizeof(frozen.text), "%s", f->text);
	(void)snprintf(frozen.label, sizeof(frozen.label), "%s", f->label);
	if (f->code < 0)
		log_warn("cannot freeze the disks: %s", f->text);
	if (l && l->fd >= 0 && l->gen == f->link_gen &&
		keeper_send_frozen(l->fd, f->msg, &frozen) < 0)
		log_warn("cannot send the result to sbxd");
}

static void fail_freeze(struct freeze *f, int code, const char *text)
{
	if (f->code < 0)
		return;
	f->code = code;
	(void)snprintf(f->text, sizeof(f->text), "%.*s", (int)sizeof(f->text) - 1, text);
}

static int check_depth(const struct keeper *k, struct err *err)
{
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		if (k->disks->n_own[i] + 1 > DISKS_MAX_OWN ||
			k->disks->last[i] >= LAYERS_MAX_NUMBER ||
			k->disks->template.disks[i].n + k->disks->n_own[i] > TEMPLATE_MAX_LAYERS)
			return err_set(err, -EMLINK,
				"the disks have too many layers to be saved again: stop the sandbox, use `sbx template save --flat` and create a new sandbox from that template");
	return 0;
}

static int make_overlays(struct keeper *k, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *path = next_file(k, (enum template_disk)i);

		(void)unlink(path);
		r = disk_make(path, k->disks->template.disks[i].files[0], k->disks->size[i], err);
	}
	return r;
}

static void on_parked(struct keeper *k, const struct guest_reply *reply);
static const struct ask_kind freeze_ask = {GUEST_PATH_PARK, .on_reply = on_parked};

static int ask_park(struct keeper *k)
{
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = guest_put_park(&wr, &(struct guest_parking){.kind = GUEST_PARK_FREEZE});

	return r < 0 ? r : ask_guest(k, &freeze_ask, slice_of(buf, wr.n), KEEPER_FREEZE_MS, -1, 0);
}

static void on_woken(struct keeper *k, const struct guest_reply *reply)
{
	if (k->freeze->state != FREEZE_WAKING)
		return;
	if (!reply->ok)
		log_warn("cannot wake the guest: %s", reply->text);
	finish_freeze(k);
}

static const struct ask_kind thaw_ask = {GUEST_PATH_WAKE, .on_reply = on_woken};

static void wake_guest(struct keeper *k)
{
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_wake w = {.wall_ms = clock_wall_ms()};
	int r = 0;

	k->freeze->state = FREEZE_WAKING;
	if (getrandom(w.entropy, sizeof(w.entropy), 0) != (ssize_t)sizeof(w.entropy))
		r = -EIO;
	if (r == 0)
		r = guest_put_wake(&wr, &w);
	if (r == 0)
		r = ask_guest(k, &thaw_ask, slice_of(buf, wr.n), KEEPER_THAW_MS, -1, 0);
	/* The guest continues automatically a little later. */
	if (r < 0)
		finish_freeze(k);
}

/* Before QEMU writes to the new file, so that each file it writes to has a name that the next start
 * finds. A kill in between leaves an empty top, or none; the next start creates it. */
static int move_files(struct keeper *k, enum template_disk disk, struct err *err)
{
	struct disks *d = k->disks;
	size_t n = d->n_own[disk];
	AUTO_FREE char *next = next_file(k, disk),
		       *layer = layers_path(k->dir, disk, d->last[disk] + 1);
	char *top = d->own[disk][n - 1];
	int r = rename(top, layer) < 0 ? -errno : 0;

	if (r == 0 && rename(next, top) < 0) {
		r = -errno;
		(void)rename(layer, top);
	}
	if (r < 0)
		return err_errno(err, r, "cannot move %s", top);
	d->own[disk][n - 1] = TAKE(layer);
	d->own[disk][d->n_own[disk]++] = top;
	d->last[disk]++;
	return 0;
}

static int switch_disk(struct keeper *k, enum template_disk disk, struct err *err)
{
	int fd, r = move_files(k, disk, err);

	if (r < 0)
		return r;
	fd = open(k->disks->own[disk][k->disks->n_own[disk] - 1], O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	r = fd < 0 ? -errno
		   : vmm_snapshot_disk(k->vmm, disk == TEMPLATE_ROOT ? VMM_ROOT : VMM_DOCKER, fd);
	return r < 0 ? err_errno(err, r, "cannot request QEMU to switch to another file") : 0;
}

/* The layers exist, or the reason why not is in f. */
static void layers_done(struct keeper *k)
{
	struct freeze *f = k->freeze;

	if (f->with_memory) {
		f->state = FREEZE_MEMORY;
		suspend_on_layers(k, f->code, f->text);
	} else {
		wake_guest(k);
	}
}

static void snapshot_disk(struct keeper *k, enum template_disk disk)
{
	struct err err = {0};
	int r;

	k->freeze->state = FREEZE_SNAPSHOT;
	k->freeze->disk = disk;
	r = switch_disk(k, disk, &err);
	if (r < 0) {
		fail_freeze(k->freeze, r, err.text);
		layers_done(k);
	}
}

void freeze_make_layers(struct keeper *k)
{
	snapshot_disk(k, TEMPLATE_ROOT);
	machine_on_qmp(k); /* sends it, and sets the timer */
}

void freeze_end(struct keeper *k, int code, const char *text)
{
	struct freeze *f = k->freeze;

	if (f->state == FREEZE_IDLE || !f->with_memory)
		return;
	if (code < 0)
		fail_freeze(f, code, text);
	finish_freeze(k);
}

void freeze_begin(struct keeper *k, int link, uint32_t msg, const char *label, bool memory)
{
	struct freeze *f = k->freeze;
	struct err err = {0};
	int r = 0;

	if (f->state != FREEZE_IDLE) {
		struct keeper_frozen busy = {
			.code = -EBUSY, .text = "the disks are already being saved"};

		(void)snprintf(busy.label, sizeof(busy.label), "%s", label);
		if (keeper_send_frozen(k->links[link].fd, msg, &busy) < 0)
			log_warn("cannot send the result to sbxd");
		return;
	}
	*f = (struct freeze){.link = link,
		.link_gen = k->links[link].gen,
		.msg = msg,
		.with_memory = memory,
		.asked_ms = clock_mono_ms()};
	(void)snprintf(f->label, sizeof(f->label), "%s", label);
	if (k->state.phase != KEEPER_RUNNING)
		r = err_set(&err, -EAGAIN, "the sandbox is not running");
	if (r == 0)
		r = check_depth(k, &err);
	if (r == 0)
		r = make_overlays(k, &err);
	if (r == 0)
		r = memory ? suspend_begin_checkpoint(k, &err) : ask_park(k);
	f->state = memory ? FREEZE_MEMORY : FREEZE_PARKING;
	if (r < 0) {
		fail_freeze(f, r, err_text(&err, r));
		finish_freeze(k);
	}
}

static void on_parked(struct keeper *k, const struct guest_reply *reply)
{
	struct freeze *f = k->freeze;

	if (f->state != FREEZE_PARKING)
		return;
	if (!k->vmm || k->state.phase != KEEPER_RUNNING) {
		fail_freeze(f, -ECANCELED, "the sandbox is being stopped");
		finish_freeze(k);
	} else if (!reply->ok) {
		fail_freeze(f, -EIO, reply->text);
		wake_guest(k);
	} else {
		snapshot_disk(k, TEMPLATE_ROOT);
		machine_on_qmp(k); /* sends it, and sets the timer */
	}
}

/* The guest waits: what it does next has a later record. */
int freeze_record(struct keeper *k, struct err *err)
{
	char layers[80];

	(void)snprintf(layers, sizeof(layers), "layers root.%u, docker.%u%s",
		k->disks->last[TEMPLATE_ROOT], k->disks->last[TEMPLATE_DOCKER],
		k->freeze->with_memory ? ", with memory" : "");
	return record_checkpoint(k, k->freeze->label, layers, &k->freeze->seq, err);
}

void freeze_on_snapshot(struct keeper *k, bool ok, const char *text)
{
	struct freeze *f = k->freeze;
	struct err err = {0};
	int r = 0;

	if (f->state != FREEZE_SNAPSHOT)
		return;
	if (!ok)
		fail_freeze(f, -EIO, text[0] ? text : "QEMU did not switch to another file");
	if (ok && f->disk == TEMPLATE_ROOT) {
		snapshot_disk(k, TEMPLATE_DOCKER);
		return;
	}
	if (ok && f->label[0] && !f->with_memory)
		r = freeze_record(k, &err);
	if (r < 0)
		fail_freeze(f, r, err_text(&err, r));
	layers_done(k);
}
