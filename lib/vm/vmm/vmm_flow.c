/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm_flow - operations of several qemu commands: shares, snapshots, disk layers.
 *
 * How      Each answer queues the next step; the last one, or an event of qemu, is reported to the
 *          owner. A refused step releases what the earlier steps have taken.
 */
#include "vmm_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "args.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

/* As fast as the file takes it: the machine stands still meanwhile. */
#define SAVE_BYTES_S (1LL << 40)
#define MAX_DETACH_TRIES 1000

/* A step that could not even be queued ends the operation like a refusal of it. */
static int step_flow(struct vmm *v, enum tag tag, int r, struct vmm_event *ev)
{
	return r < 0 ? vmm_flow_on_failure(v, tag, strerror(-r), ev) : 0;
}

static void undo_flow(struct vmm *v, const char *command, json_t *args)
{
	(void)!vmm_command(v, TAG_UNDO, command, args, -1);
}

/* ---- the share ---- */

int vmm_attach_share(struct vmm *v, int fd)
{
	return vmm_command(v, TAG_SHARE_FD, "getfd", json_pack("{s:s}", "fdname", "share"), fd);
}

static int add_share_chardev(struct vmm *v)
{
	json_t *backend = json_pack("{s:s, s:{s:{s:s, s:{s:s}}, s:b}}", "type", "socket", "data",
		"addr", "type", "fd", "data", "str", "share", "server", 0);

	return vmm_command(v, TAG_SHARE_CHARDEV, "chardev-add",
		json_pack("{s:s, s:o}", "id", "share", "backend", backend), -1);
}

static int add_share_device(struct vmm *v)
{
	return vmm_command(v, TAG_SHARE_DEVICE, "device_add",
		json_pack("{s:s, s:s, s:s, s:s, s:i}", "driver", "vhost-user-fs-pci", "id", "share",
			"chardev", "share", "tag", "sbx", "queue-size", 1024),
		-1);
}

int vmm_detach_share(struct vmm *v)
{
	if (v->detaching)
		return -EBUSY;
	v->detaching = true;
	v->detach_ms = clock_mono_ms() + VMM_DETACH_MS;
	v->n_detach_tries = 0;
	return vmm_command(
		v, TAG_DETACH_DEVICE, "device_del", json_pack("{s:s}", "id", "share"), -1);
}

static int remove_share_chardev(struct vmm *v)
{
	v->n_detach_tries++;
	return vmm_command(
		v, TAG_DETACH_CHARDEV, "chardev-remove", json_pack("{s:s}", "id", "share"), -1);
}

static int share_detached(struct vmm *v, struct vmm_event *ev)
{
	if (!v->detaching)
		return 0;
	v->detaching = false;
	return vmm_tell(ev, VMM_EV_SHARE_DETACHED, "");
}

static int detach_failed(struct vmm *v, const char *text, struct vmm_event *ev)
{
	if (!v->detaching)
		return 0;
	v->detaching = false;
	return vmm_tell(ev, VMM_EV_SHARE_DETACH_FAILED, text);
}

/* Also when the guest lets go of it after we have stopped waiting: its chardev must go too. */
int vmm_flow_on_share_gone(struct vmm *v, struct vmm_event *ev)
{
	return remove_share_chardev(v) < 0 ? detach_failed(v, "too many commands are pending", ev)
					   : 0;
}

static void undo_share(struct vmm *v, enum tag tag)
{
	if (tag == TAG_SHARE_CHARDEV)
		undo_flow(v, "closefd", json_pack("{s:s}", "fdname", "share"));
	if (tag == TAG_SHARE_DEVICE)
		undo_flow(v, "chardev-remove", json_pack("{s:s}", "id", "share"));
}

/* ---- snapshots ---- */

static bool is_migrating(const struct vmm *v)
{
	return v->image_fd >= 0 || v->migrating != MIGRATE_NONE;
}

int vmm_save(struct vmm *v, int fd)
{
	if (is_migrating(v)) {
		fd_close(&fd);
		return -EBUSY;
	}
	v->image_fd = fd;
	return vmm_command(v, TAG_SAVE_STOP, "stop", NULL, -1);
}

/* x-ignore-shared: without it qemu reads all of the memory, which allocates what the guest never
 * used. */
static int set_capabilities(struct vmm *v, enum tag tag)
{
	return vmm_command(v, tag, "migrate-set-capabilities",
		json_pack("{s:[{s:s, s:b}, {s:s, s:b}]}", "capabilities", "capability", "events",
			"state", 1, "capability", "x-ignore-shared", "state", 1),
		-1);
}

int vmm_restore(struct vmm *v, int fd)
{
	if (!v->incoming || is_migrating(v)) {
		fd_close(&fd);
		return v->incoming ? -EBUSY : -EINVAL;
	}
	v->incoming = false;
	v->image_fd = fd;
	return set_capabilities(v, TAG_RESTORE_CAPS);
}

static int send_image_fd(struct vmm *v, enum tag tag)
{
	return vmm_command(
		v, tag, "getfd", json_pack("{s:s}", "fdname", "image"), TAKE_FD(v->image_fd));
}

static int lift_limit(struct vmm *v)
{
	return vmm_command(v, TAG_SAVE_LIMIT, "migrate-set-parameters",
		json_pack("{s:I}", "max-bandwidth", (json_int_t)SAVE_BYTES_S), -1);
}

static int migrate_flow(struct vmm *v, enum tag tag)
{
	bool save = tag == TAG_SAVE_MIGRATE;

	v->migrating = save ? MIGRATE_SAVE : MIGRATE_RESTORE;
	v->migrate_ms = clock_mono_ms() + VMM_SAVE_MS;
	return vmm_command(v, tag, save ? "migrate" : "migrate-incoming",
		json_pack("{s:s}", "uri", "fd:image"), -1);
}

static int migrate_failed(struct vmm *v, bool save, const char *text, struct vmm_event *ev)
{
	v->migrating = MIGRATE_NONE;
	fd_close(&v->image_fd);
	return vmm_tell(ev, save ? VMM_EV_SAVE_FAILED : VMM_EV_RESTORE_FAILED, text);
}

int vmm_flow_on_migration(struct vmm *v, const char *status, struct vmm_event *ev)
{
	bool saving = v->migrating == MIGRATE_SAVE;

	if (v->migrating == MIGRATE_NONE)
		return 0;
	if (strcmp(status, "failed") == 0)
		return migrate_failed(v, saving,
			saving ? "QEMU cannot write the snapshot" : "QEMU cannot read the snapshot",
			ev);
	if (strcmp(status, "completed") != 0)
		return 0;
	v->migrating = MIGRATE_NONE;
	return vmm_tell(ev, saving ? VMM_EV_SAVED : VMM_EV_RESTORED, "");
}

/* ---- snapshots of disks ---- */

/* The node that a disk is written to, or the one that is to come. */
static void node_name(const struct vmm *v, bool next, char buf[32])
{
	unsigned n = v->n_snapshots[v->snap_disk] + (next ? 1 : 0);
	const char *name = args_disk_name(v->snap_disk);

	if (n == 0)
		(void)snprintf(buf, 32, "%s", name);
	else
		(void)snprintf(buf, 32, "%s-%u", name, n);
}

static int send_set_fd(struct vmm *v, enum tag tag, int fd)
{
	return vmm_command(v, tag, "add-fd", json_pack("{s:i}", "fdset-id", (int)v->n_sets), fd);
}

/* The old top is a lower layer now, and qemu has reopened it read-only. The set of descriptors
 * keeps the writable one open, with the locks of a writer: a qemu that takes the locks of all
 * layers again (`cont` after a save) would find a second writer. Locks belong to the open file,
 * which our copy shares. qemu closes a descriptor of a set only while the machine runs. */
static void release_layer(struct vmm *v)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	int *top = &v->top_fd[v->snap_disk];

	if (*top >= 0)
		(void)fcntl(*top, F_OFD_SETLK, &all);
	fd_close(top);
	*top = TAKE_FD(v->snap_fd);
}

static void close_copies(struct vmm *v)
{
	fd_close(&v->snap_fd);
	fd_close(&v->snap_fd_ro);
}

static int copy_fds(struct vmm *v, int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	v->snap_fd_ro = open(path, O_RDONLY | O_CLOEXEC);
	if (v->snap_fd_ro >= 0)
		v->snap_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return v->snap_fd_ro < 0 || v->snap_fd < 0 ? -errno : 0;
}

/* A file without a name in the jail is passed as a set of descriptors. The set also has a read-only
 * one: qemu reopens the file read-only for the next snapshot. */
int vmm_snapshot_disk(struct vmm *v, enum vmm_disk_id disk, int fd)
{
	int r = v->snapping ? -EBUSY : 0;

	if (r == 0 && v->n_snapshots[disk] >= VMM_MAX_SNAPSHOTS)
		r = -ENOSPC;
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	r = copy_fds(v, fd);
	if (r < 0) {
		fd_close(&fd);
		close_copies(v);
		return r;
	}
	v->snapping = true;
	v->snap_disk = disk;
	v->n_sets++;
	r = send_set_fd(v, TAG_SNAP_FD, fd);
	if (r < 0) {
		v->snapping = false;
		close_copies(v);
	}
	return r;
}

/* As add_disk has it, without a backing: the snapshot puts it on the old one. */
static int add_node(struct vmm *v)
{
	char name[32], path[32];
	json_t *cache = json_pack("{s:b, s:b}", "direct", 0, "no-flush", 0);
	json_t *file;

	node_name(v, true, name);
	(void)snprintf(path, sizeof(path), "/dev/fdset/%u", v->n_sets);
	file = json_pack("{s:s, s:s, s:s, s:s, s:s, s:O}", "driver", "file", "filename", path,
		"aio", "threads", "discard", "unmap", "locking", "on", "cache", cache);
	return vmm_command(v, TAG_SNAP_NODE, "blockdev-add",
		json_pack("{s:s, s:s, s:s, s:o, s:o, s:n}", "driver", "qcow2", "node-name", name,
			"discard", "unmap", "cache", cache, "file", file, "backing"),
		-1);
}

static int put_node(struct vmm *v)
{
	char old[32], new[32];

	node_name(v, false, old);
	node_name(v, true, new);
	return vmm_command(v, TAG_SNAP_DO, "blockdev-snapshot",
		json_pack("{s:s, s:s}", "node", old, "overlay", new), -1);
}

static void undo_snapshot(struct vmm *v, enum tag tag)
{
	char name[32];

	node_name(v, true, name);
	if (tag == TAG_SNAP_DO)
		undo_flow(v, "blockdev-del", json_pack("{s:s}", "node-name", name));
	if (tag > TAG_SNAP_FD)
		undo_flow(v, "remove-fd", json_pack("{s:i}", "fdset-id", (int)v->n_sets));
	close_copies(v);
	v->snapping = false;
}

/* ---- answers ---- */

int vmm_flow_on_success(struct vmm *v, enum tag tag, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_SHARE_FD:
		return step_flow(v, TAG_SHARE_CHARDEV, add_share_chardev(v), ev);
	case TAG_SHARE_CHARDEV:
		return step_flow(v, TAG_SHARE_DEVICE, add_share_device(v), ev);
	case TAG_SHARE_DEVICE:
		return vmm_tell(ev, VMM_EV_SHARE_ATTACHED, "");
	case TAG_DETACH_CHARDEV:
		return share_detached(v, ev);
	case TAG_SAVE_STOP:
		return step_flow(v, TAG_SAVE_CAPS, set_capabilities(v, TAG_SAVE_CAPS), ev);
	case TAG_SAVE_CAPS:
		return step_flow(v, TAG_SAVE_LIMIT, lift_limit(v), ev);
	case TAG_SAVE_LIMIT:
		return step_flow(v, TAG_SAVE_FD, send_image_fd(v, TAG_SAVE_FD), ev);
	case TAG_SAVE_FD:
		return step_flow(v, TAG_SAVE_MIGRATE, migrate_flow(v, TAG_SAVE_MIGRATE), ev);
	case TAG_RESTORE_CAPS:
		return step_flow(v, TAG_RESTORE_FD, send_image_fd(v, TAG_RESTORE_FD), ev);
	case TAG_RESTORE_FD:
		return step_flow(v, TAG_RESTORE_MIGRATE, migrate_flow(v, TAG_RESTORE_MIGRATE), ev);
	case TAG_SNAP_FD:
		return step_flow(v, TAG_SNAP_FD_RO,
			send_set_fd(v, TAG_SNAP_FD_RO, TAKE_FD(v->snap_fd_ro)), ev);
	case TAG_SNAP_FD_RO:
		return step_flow(v, TAG_SNAP_NODE, add_node(v), ev);
	case TAG_SNAP_NODE:
		return step_flow(v, TAG_SNAP_DO, put_node(v), ev);
	case TAG_SNAP_DO:
		v->snapping = false;
		v->n_snapshots[v->snap_disk]++;
		release_layer(v);
		return vmm_tell(ev, VMM_EV_SNAPSHOT, "");
	default:
		return 0;
	}
}

int vmm_flow_on_failure(struct vmm *v, enum tag tag, const char *text, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_SHARE_FD:
	case TAG_SHARE_CHARDEV:
	case TAG_SHARE_DEVICE:
		undo_share(v, tag);
		return vmm_tell(ev, VMM_EV_SHARE_FAILED, text);
	case TAG_DETACH_DEVICE:
		return detach_failed(v, text, ev);
	case TAG_DETACH_CHARDEV:
		/* The device lets go of it a moment after DEVICE_DELETED. */
		return v->n_detach_tries < MAX_DETACH_TRIES && remove_share_chardev(v) == 0
			       ? 0
			       : detach_failed(v, text, ev);
	case TAG_SAVE_STOP:
	case TAG_SAVE_CAPS:
	case TAG_SAVE_LIMIT:
	case TAG_SAVE_FD:
	case TAG_SAVE_MIGRATE:
		return migrate_failed(v, true, text, ev);
	case TAG_RESTORE_CAPS:
	case TAG_RESTORE_FD:
	case TAG_RESTORE_MIGRATE:
		return migrate_failed(v, false, text, ev);
	case TAG_SNAP_FD:
	case TAG_SNAP_FD_RO:
	case TAG_SNAP_NODE:
	case TAG_SNAP_DO:
		undo_snapshot(v, tag);
		return vmm_tell(ev, VMM_EV_SNAPSHOT_FAILED, text);
	default:
		return 0;
	}
}

/* ---- time ---- */

uint64_t vmm_flow_deadline(const struct vmm *v)
{
	uint64_t end = v->migrating != MIGRATE_NONE ? v->migrate_ms : UINT64_MAX;

	return v->detaching ? MIN(end, v->detach_ms) : end;
}

int vmm_flow_on_overdue(struct vmm *v, struct vmm_event *ev)
{
	if (v->detaching && v->stopped && clock_mono_ms() >= v->detach_ms) {
		v->detach_ms = clock_mono_ms() + VMM_DETACH_MS; /* it could not let go */
		return 0;
	}
	if (v->detaching && clock_mono_ms() >= v->detach_ms)
		return detach_failed(v, "the guest does not release the share", ev);
	return vmm_fail(v, ev, "QEMU does not finish the snapshot");
}
