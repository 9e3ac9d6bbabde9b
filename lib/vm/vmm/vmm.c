/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "args.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/os/worker/worker.h"

/* ---- start and end ---- */

static int new_file(uint64_t bytes, const char *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return err_errno(
			err, -errno, "cannot create a file for the guest memory in %s", dir);
	return TAKE_FD(fd);
}

static int new_memfd(uint64_t bytes, struct err *err)
{
	/* The name is qemu's own for such memory: `sbx secret scan` and probes look for it. */
	AUTO_CLOSE int fd = memfd_create("memory-backend-memfd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_errno(err, -errno, "cannot allocate the guest memory");
	return TAKE_FD(fd);
}

int vmm_memory_new(uint64_t bytes, const char *dir, struct err *err)
{
	return dir ? new_file(bytes, dir, err) : new_memfd(bytes, err);
}

int vmm_memory_check(const char *dir, struct err *err)
{
	AUTO_CLOSE int fd = -1;

	if (!file_is_local(dir))
		return err_set(err, -ENOTSUP, "%s is not on a local file system", dir);
	if (file_has_quota(dir))
		return err_set(
			err, -EDQUOT, "the file system of %s has a quota for this user", dir);
	fd = new_file(0, dir, err);
	return MIN(fd, 0);
}

int vmm_memory_fd(const struct vmm *v)
{
	return v->memory_fd;
}

static int spawn_vmm(struct vmm *v, const struct vmm_config *config, int qmp_fd, struct err *err)
{
	struct vmm_config with_memory = *config;
	const struct vmm_config *c = &with_memory;
	struct args a;
	int r;

	with_memory.memory_fd = v->memory_fd;
	r = args_build(&a, c, qmp_fd, err);

	if (r == 0) {
		struct jail_plan plan = {
			.profile = JAIL_QEMU,
			.program = ARGS_QEMU,
			.argv = a.argv,
			.mounts = a.mounts,
			.n_mounts = a.n_mounts,
			.fds = a.fds,
			.n_fds = a.n_fds,
			.log_fd = c->log_fd,
		};
		r = worker_spawn(&plan, &v->child, err);
	}
	args_done(&a);
	return r < 0 ? err_wrap(err, r, "cannot start QEMU") : 0;
}

int vmm_start(const struct vmm_config *config, struct vmm **ret_vmm, struct err *err)
{
	struct vmm *v = xcalloc(1, sizeof(*v));
	AUTO_CLOSE int theirs = -1;
	int pair[2], r;

	v->fd = v->image_fd = v->snap_fd = v->snap_fd_ro = v->memory_fd = -1;
	for (size_t i = 0; i < VMM_N_DISKS; i++)
		v->top_fd[i] = -1;
	v->child = (struct jail_child){.pid = -1, .pidfd = -1, .notify_fd = -1};
	v->incoming = config->incoming;
	qmp_init(&v->qmp);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		r = err_errno(err, -errno, "cannot create the QEMU monitor socket");
		vmm_done(v);
		return r;
	}
	v->fd = pair[0];
	theirs = pair[1];
	r = fd_set_nonblock(v->fd, true);
	if (r == 0)
		r = v->memory_fd = config->memory_fd < 0
					   ? vmm_memory_new(config->memory, config->memory_dir, err)
					   : fcntl(config->memory_fd, F_DUPFD_CLOEXEC, 0);
	if (r >= 0)
		r = spawn_vmm(v, config, theirs, err);
	if (r < 0) {
		vmm_done(v);
		return r;
	}
	v->deadline_ms = clock_mono_ms() + VMM_COMMAND_MS;
	*ret_vmm = v;
	return 0;
}

void vmm_kill(struct vmm *v)
{
	worker_kill(&v->child);
}

void vmm_done(struct vmm *v)
{
	if (!v)
		return;
	worker_end(&v->child);
	qmp_done(&v->qmp);
	fd_close(&v->fd);
	fd_close(&v->image_fd);
	fd_close(&v->snap_fd);
	fd_close(&v->snap_fd_ro);
	for (size_t i = 0; i < VMM_N_DISKS; i++)
		fd_close(&v->top_fd[i]);
	fd_close(&v->memory_fd);
	free(v);
}

int vmm_poll_fd(const struct vmm *v)
{
	return v->fd;
}

const struct jail_child *vmm_child(const struct vmm *v)
{
	return &v->child;
}

uint32_t vmm_poll_events(const struct vmm *v)
{
	int fd;

	if (v->dead)
		return 0;
	return qmp_out(&v->qmp, &fd).n ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

static uint64_t command_deadline(const struct vmm *v)
{
	return v->dead || !qmp_is_waiting(&v->qmp) ? UINT64_MAX : v->deadline_ms;
}

uint64_t vmm_deadline(const struct vmm *v)
{
	return v->dead ? UINT64_MAX : MIN(command_deadline(v), vmm_flow_deadline(v));
}

/* ---- writing ---- */

/* A full socket is not an error: EPOLLOUT or the deadline decides. */
static void flush_out(struct vmm *v)
{
	int fd;
	struct slice s = qmp_out(&v->qmp, &fd);
	ssize_t n;

	if (!s.n || v->dead)
		return;
	if (v->timed_id != v->qmp.queue[0].id) {
		v->timed_id = v->qmp.queue[0].id;
		v->deadline_ms = clock_mono_ms() + VMM_COMMAND_MS;
	}
	n = fd_send(v->fd, &(struct iovec){(void *)s.p, s.n}, 1, &fd, fd >= 0, MSG_DONTWAIT);
	if (n > 0)
		qmp_wrote(&v->qmp, (size_t)n);
}

int vmm_command(struct vmm *v, enum tag tag, const char *name, json_t *args, int fd)
{
	int r;

	if (v->dead) {
		json_decref(args);
		fd_close(&fd);
		return -EPIPE;
	}
	r = qmp_send(&v->qmp, tag, name, args, fd);
	flush_out(v);
	return r;
}

int vmm_pause(struct vmm *v)
{
	return vmm_command(v, TAG_PLAIN, "stop", NULL, -1);
}

int vmm_resume(struct vmm *v)
{
	v->n_cont_tries = 0;
	return vmm_command(v, TAG_CONT, "cont", NULL, -1);
}

int vmm_quit(struct vmm *v)
{
	v->ending = true;
	return vmm_command(v, TAG_QUIT, "quit", NULL, -1);
}

int vmm_read_console(struct vmm *v)
{
	v->n_console_reads++;
	return vmm_command(v, TAG_CONSOLE, "ringbuf-read",
		json_pack("{s:s, s:i}", "device", "console", "size", VMM_MAX_TAIL), -1);
}

int vmm_console_tail(struct vmm *v)
{
	v->n_console_reads = 0;
	v->n_tail = 0;
	return vmm_read_console(v);
}

/* ---- reading ---- */

static int feed_vmm(struct vmm *v, struct vmm_event *ev)
{
	struct qmp_item it = {};
	struct err err;
	int r = qmp_feed(&v->qmp, &v->rest, &it, &err);

	if (r < 0)
		return vmm_fail(v, ev, err_text(&err, r));
	if (r == 0)
		return 0;
	r = vmm_on_item(v, &it, ev);
	qmp_item_done(&it);
	flush_out(v);
	return r;
}

/* 1: bytes are available, 0: none now, negative: the end. */
static int read_some(struct vmm *v)
{
	ssize_t n;

	if (v->n_reads >= VMM_MAX_READS)
		return 0;
	v->n_reads++;
	n = recv(v->fd, v->in, sizeof(v->in), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	v->rest = slice_of(v->in, (size_t)n);
	return 1;
}

static int on_end(struct vmm *v, struct vmm_event *ev)
{
	if (!v->ending)
		return vmm_fail(v, ev, "QEMU exited unexpectedly");
	v->dead = true;
	return vmm_tell(ev, VMM_EV_ENDED, "");
}

int vmm_next(struct vmm *v, struct vmm_event *ret_ev)
{
	int r = 0;

	*ret_ev = (struct vmm_event){};
	if (v->dead)
		return 0;
	flush_out(v);
	while (r == 0 && !v->dead) {
		if (v->rest.n) {
			r = feed_vmm(v, ret_ev);
			continue;
		}
		r = read_some(v);
		if (r < 0)
			return on_end(v, ret_ev);
		if (r == 0)
			break;
		r = 0;
	}
	if (r == 0) {
		v->n_reads = 0;
		if (clock_mono_ms() >= command_deadline(v))
			return vmm_fail(v, ret_ev, "QEMU is not responding");
		if (clock_mono_ms() >= vmm_flow_deadline(v))
			return vmm_flow_on_overdue(v, ret_ev);
	}
	return r;
}
