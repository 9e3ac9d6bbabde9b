/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm - QEMU and virtiofsd: their arguments, start and stop.
 *
 * How      Called by the steps of start.c and by the parts that restore a VM. Events of qemu go up
 *          through life_ops.vm_event.
 * Trust    Paths come from the user's own spec and directories. lib/vm/vmm limits and cleans QEMU's
 *          messages.
 */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/vmm/initrd.h"
#include "lib/vm/vmm/stub.h"

int machine_find_template(struct keeper *k, struct err *err)
{
	int r = disks_open_template(k->disks, k->spec.template, k->spec.template_id, err);

	return r < 0 ? r : disks_set_size(k->disks, k->spec.disk, err);
}

static const char *template_hash(const struct keeper *k, const char *name)
{
	const json_t *files = json_object_get(k->disks->template.manifest, "files");

	return json_string_value(json_object_get(json_object_get(files, name), "hash"));
}

/* For VMs that are restored. A kernel of another format is used completely. */
static int make_stub(struct keeper *k, const char *folder, struct err *err)
{
	const char *hash = template_hash(k, "vmlinuz");
	AUTO_FREE char *path = NULL;
	int r = 0;

	if (!hash)
		return err_set(err, -EUCLEAN, "the template has no hash of vmlinuz");
	path = xasprintf("%s/%.32s.kernel", folder, hash);
	if (access(path, R_OK) < 0)
		r = stub_write(path, k->disks->template.kernel, err);
	if (r == 0)
		k->stub = TAKE(path);
	return r == -ENOTSUP ? 0 : r;
}

/* The name contains the times and sizes of its parts: a new build or template has another name. */
static int make_initrd(struct keeper *k, const char *folder, struct err *err)
{
	AUTO_FREE char *init = paths_get(PATHS_LIBEXEC, "sbx-guest");
	const char *hash = template_hash(k, "modules.cpio");
	struct stat st;

	if (stat(init, &st) < 0)
		return err_errno(err, -errno, "cannot find %s", init);
	if (!hash)
		return err_set(err, -EUCLEAN, "the template has no hash of modules.cpio");
	k->initrd = xasprintf("%s/%llx-%llx-%.32s.img", folder,
		(unsigned long long)st.st_mtim.tv_sec * 1000000000ull +
			(unsigned long long)st.st_mtim.tv_nsec,
		(unsigned long long)st.st_size, hash);
	if (access(k->initrd, R_OK) == 0)
		return 0;
	return initrd_write(k->initrd, init, k->disks->template.modules, err);
}

int machine_make_initrd(struct keeper *k, struct err *err)
{
	AUTO_FREE char *folder = paths_get(PATHS_STATE, "initrd");
	int r = paths_make(folder, err);

	if (r == 0)
		r = make_initrd(k, folder, err);
	return r < 0 ? r : make_stub(k, folder, err);
}

int start_selftest(struct keeper *k, struct err *err)
{
	int r = machine_find_template(k, err);

	if (r == 0)
		r = machine_make_initrd(k, err);
	return r < 0 ? r : accel_decide(k, err);
}

int machine_watch(struct keeper *k)
{
	struct loop_key key = {.kind = EV_QMP, .gen = ++k->vmm_gen};
	int r = loop_add(&k->loop, vmm_poll_fd(k->vmm), vmm_poll_events(k->vmm), key);

	key.kind = EV_QEMU_END;
	return r < 0 ? r : loop_add(&k->loop, vmm_child(k->vmm)->pidfd, EPOLLIN, key);
}

void machine_on_qmp(struct keeper *k)
{
	struct vmm_event ev;
	uint64_t deadline;

	while (k->vmm && vmm_next(k->vmm, &ev) > 0)
		k->life->vm_event(k, &ev);
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

/* Field 3 of /proc/PID/stat, after the name in parentheses. */
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

int start_port(struct keeper *k, struct err *err)
{
	int fds[HANDS_N_PORTS] = {-1, -1}, r = hands_listen(k, fds, err);

	k->port_fd = fds[HANDS_CTL];
	k->net_port_fd = fds[HANDS_NET];
	return r;
}

static int watch_share(struct keeper *k)
{
	struct loop_key key = {.kind = EV_SHARE_END, .gen = ++k->share_gen};
	int r = loop_add(&k->loop, k->share.child.pidfd, EPOLLIN, key);

	if (r == 0 && k->share.hidden.pidfd >= 0)
		r = loop_add(&k->loop, k->share.hidden.pidfd, EPOLLIN, key);
	if (r == 0 && k->share.hand.pidfd >= 0)
		r = loop_add(&k->loop, k->share.hand.pidfd, EPOLLIN, key);
	if (r == 0)
		r = guard_watch(k);
	key.kind = EV_CROWD;
	return r < 0 ? r : loop_add(&k->loop, k->share.room.fd, EPOLLIN, key);
}

void start_unwatch_share(struct keeper *k)
{
	loop_del(&k->loop, k->share.child.pidfd);
	if (k->share.hidden.pidfd >= 0)
		loop_del(&k->loop, k->share.hidden.pidfd);
	if (k->share.hand.pidfd >= 0)
		loop_del(&k->loop, k->share.hand.pidfd);
	crowd_drop(k);
	guard_drop(k);
}

int start_share(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int event_fd = -1;
	int r;

	if (k->spec.n_workspaces + k->spec.n_mounts == 0)
		return 0;
	r = guard_open(k, &event_fd, err);
	if (r == 0)
		r = hands_share(k, event_fd, &k->share, err);
	if (r < 0)
		return r;
	k->has_share = true;
	r = watch_share(k);
	return r < 0 ? err_errno(err, r, "cannot watch virtiofsd") : 0;
}

size_t start_fill_mounts(const struct keeper *k, struct guest_mount mounts[SPEC_MAX_WORKSPACES])
{
	for (size_t i = 0; i < k->spec.n_workspaces + k->spec.n_mounts; i++) {
		const struct spec_workspace *w = hands_nth_mount(k, i);
		bool home = i >= k->spec.n_workspaces;
		bool staged = k->spec.staged && !home && !w->ro;

		mounts[i] = (struct guest_mount){
			.flags = (uint8_t)((w->ro ? GUEST_MOUNT_RO : 0) |
					   (w->file ? GUEST_MOUNT_FILE : 0) |
					   (home ? GUEST_MOUNT_HOME : 0) |
					   (staged ? GUEST_MOUNT_STAGED : 0) |
					   (staged && k->spec.staged_since ? GUEST_MOUNT_KEPT : 0)),
			.share = w->guest,
			.path = w->guest};
	}
	return k->spec.n_workspaces + k->spec.n_mounts;
}

static void fill_config(const struct keeper *k, struct vmm_config *ret)
{
	*ret = (struct vmm_config){.kernel = k->disks->template.kernel,
		.initrd = k->initrd,
		.stub = k->stub,
		.cpus = MIN(k->spec.cpus, VMM_MAX_CPUS),
		.memory = k->spec.memory,
		.memory_fd = k->restore_fd ? *k->restore_fd : -1,
		.memory_dir = k->memory_dir,
		.accel = k->accel,
		.ctl_listen_fd = k->port_fd,
		.net_listen_fd = k->net_port_fd,
		.share_fd = k->has_share && !k->restore_fd ? k->share.vhost_fd : -1,
		.log_fd = k->chatter_wr,
		.incoming = k->restore_fd != NULL};
	disks_fill(k->disks, ret->disks);
}

int start_image_key(const struct keeper *k, char key[IMAGE_KEY_LEN + 1], struct err *err)
{
	struct image_class class = {.template_id = k->disks->template.id,
		.initrd = k->initrd,
		.disk = k->disks->is_larger ? k->disks->size[TEMPLATE_ROOT] : 0};
	struct vmm_config config;

	fill_config(k, &config);
	/* The tops do not exist yet when a snapshot is searched for. */
	for (enum vmm_disk_id i = 0; i < VMM_N_DISKS; i++) {
		if (k->disks->n_own[i] == 0)
			config.disks[i].files[config.disks[i].n++] = "";
	}
	return image_key(&config, &class, key, err);
}

int start_qemu(struct keeper *k, struct err *err)
{
	struct vmm_config config;
	/* The qemu of a killed keeper may still be running. */
	int r = disks_wait_free(k->disks, err);

	fill_config(k, &config);
	if (r == 0)
		r = vmm_start(&config, &k->vmm, err);
	if (r < 0)
		return r;
	/* qemu has its own descriptor, and so has the child that fills the memory: for a VM of the
	 * pool, only from the claim on. */
	if (k->restore_fd && k->plan != START_POOL)
		fd_close(k->restore_fd);
	k->state.qemu_pid = (uint32_t)vmm_child(k->vmm)->pid;
	r = machine_watch(k);
	return r < 0 ? err_errno(err, r, "cannot watch QEMU") : 0;
}

void machine_end_qemu(struct keeper *k)
{
	if (!k->vmm)
		return;
	loop_timer_clear(&k->loop, &k->vmm_timer);
	loop_del(&k->loop, vmm_poll_fd(k->vmm));
	loop_del(&k->loop, vmm_child(k->vmm)->pidfd);
	vmm_done(k->vmm);
	k->vmm = NULL;
	k->state.qemu_pid = 0;
	k->state.paused = false;
}

void start_stop_share(struct keeper *k)
{
	if (!k->has_share)
		return;
	start_unwatch_share(k);
	share_stop(&k->share);
	k->has_share = false;
}
