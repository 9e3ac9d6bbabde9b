#include "vmm.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "args.h"
#include "qmp.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/mem.h"

/* Enough to empty the ring once; a guest that goes on writing does not keep us reading. */
#define MAX_CONSOLE_READS (VMM_CONSOLE_BYTES / VMM_MAX_TAIL + 2)
#define MAX_CTL_TRIES 1000

/* What an answer belongs to; each row of `answers` below says what follows. */
enum tag {
	TAG_PLAIN, /* pause, resume, power-down: only a refusal is told */
	TAG_QUIT,
	TAG_CONSOLE,
	TAG_CTL_DEL,
	TAG_CTL_ADD,
	TAG_SHARE_FD,
	TAG_SHARE_CHARDEV,
	TAG_SHARE_DEVICE,
	TAG_SHARE_UNDO, /* its outcome changes nothing */
	TAG_SAVE_STOP,
	TAG_SAVE_CAPS,
	TAG_SAVE_FD,
	TAG_SAVE_MIGRATE,
	TAG_RESTORE_CAPS,
	TAG_RESTORE_MIGRATE,
	N_TAGS,
};

struct vmm {
	struct jail_child child;
	int fd;
	struct qmp qmp;
	uint8_t in[4096];
	struct slice rest;    /* of `in`, not fed yet */
	unsigned n_reads;     /* since vmm_next last gave 0 */
	uint64_t deadline_ms; /* of the command on the wire */
	uint32_t timed_id;    /* the command that deadline is for */
	bool ending;	      /* shut down, reset or told to quit: what follows is no surprise */
	bool dead;	      /* VMM_EV_ENDED or VMM_EV_FATAL was given */
	bool restoring;
	int save_fd; /* between vmm_save and its turn */
	enum { MIGRATE_NONE, MIGRATE_SAVE, MIGRATE_RESTORE } migrating;
	unsigned n_console_reads;
	bool renewing; /* vmm_renew_ctl waits for the old port's end */
	unsigned n_ctl_tries;
	char tail[VMM_MAX_TAIL];
	size_t n_tail;
};

/* ---- start and end ---- */

static int spawn(struct vmm *v, const struct vmm_config *c, int qmp_fd, struct err *err)
{
	struct args a;
	int r = args_build(&a, c, qmp_fd, err);

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
			.memory_max = c->memory_max,
			.cgroup = c->cgroup,
		};
		r = jail_spawn(&plan, &v->child, err);
	}
	args_done(&a);
	return r < 0 ? err_wrap(err, r, "starting qemu") : 0;
}

int vmm_start(const struct vmm_config *config, struct vmm **ret_vmm, struct err *err)
{
	struct vmm *v = xcalloc(1, sizeof(*v));
	AUTO_CLOSE int theirs = -1;
	int pair[2], r;

	v->fd = v->save_fd = -1;
	v->child = (struct jail_child){.pid = -1, .pidfd = -1, .notify_fd = -1};
	v->restoring = config->restore_fd >= 0;
	qmp_init(&v->qmp);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		r = err_errno(err, -errno, "making qemu's monitor socket");
		vmm_done(v);
		return r;
	}
	v->fd = pair[0];
	theirs = pair[1];
	r = fd_set_nonblock(v->fd, true);
	if (r == 0)
		r = spawn(v, config, theirs, err);
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
	if (v->child.pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, v->child.pidfd, SIGKILL, NULL, 0);
}

void vmm_done(struct vmm *v)
{
	if (!v)
		return;
	if (v->child.pidfd >= 0)
		jail_child_kill(&v->child);
	qmp_done(&v->qmp);
	fd_close(&v->fd);
	fd_close(&v->save_fd);
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

uint64_t vmm_deadline(const struct vmm *v)
{
	return v->dead || !qmp_is_waiting(&v->qmp) ? UINT64_MAX : v->deadline_ms;
}

/* ---- writing ---- */

static ssize_t send_with_fd(int sock, struct slice s, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = {};
	struct iovec iov = {.iov_base = (void *)s.p, .iov_len = s.n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		m.msg_control = u.buf;
		m.msg_controllen = sizeof(u.buf);
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)),
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A full socket is no error: EPOLLOUT or the deadline decides. */
static void flush_out(struct vmm *v)
{
	int fd;
	struct slice s = qmp_out(&v->qmp, &fd);
	ssize_t n;

	if (!s.n || v->dead)
		return;
	if (v->timed_id != v->qmp.queue[0].id) {
		bool saving = v->qmp.queue[0].tag == TAG_SAVE_MIGRATE;

		v->timed_id = v->qmp.queue[0].id;
		v->deadline_ms = clock_mono_ms() + (saving ? VMM_SAVE_MS : VMM_COMMAND_MS);
	}
	n = send_with_fd(v->fd, s, fd);
	if (n > 0)
		qmp_wrote(&v->qmp, (size_t)n);
}

static int command(struct vmm *v, enum tag tag, const char *name, json_t *args, int fd)
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

int vmm_powerdown(struct vmm *v)
{
	return command(v, TAG_PLAIN, "system_powerdown", NULL, -1);
}

int vmm_pause(struct vmm *v)
{
	return command(v, TAG_PLAIN, "stop", NULL, -1);
}

int vmm_resume(struct vmm *v)
{
	return command(v, TAG_PLAIN, "cont", NULL, -1);
}

int vmm_quit(struct vmm *v)
{
	v->ending = true;
	return command(v, TAG_QUIT, "quit", NULL, -1);
}

int vmm_renew_ctl(struct vmm *v)
{
	v->renewing = true;
	v->n_ctl_tries = 0;
	return command(v, TAG_CTL_DEL, "device_del", json_pack("{s:s}", "id", "ctl"), -1);
}

int vmm_attach_share(struct vmm *v, int fd)
{
	return command(v, TAG_SHARE_FD, "getfd", json_pack("{s:s}", "fdname", "share"), fd);
}

int vmm_save(struct vmm *v, int fd)
{
	if (v->save_fd >= 0 || v->migrating != MIGRATE_NONE) {
		fd_close(&fd);
		return -EBUSY;
	}
	v->save_fd = fd;
	return command(v, TAG_SAVE_STOP, "stop", NULL, -1);
}

static int read_console(struct vmm *v)
{
	v->n_console_reads++;
	return command(v, TAG_CONSOLE, "ringbuf-read",
		json_pack("{s:s, s:i}", "device", "console", "size", VMM_MAX_TAIL), -1);
}

int vmm_console_tail(struct vmm *v)
{
	v->n_console_reads = 0;
	v->n_tail = 0;
	return read_console(v);
}

/* ---- answers ---- */

static int tell(struct vmm_event *ev, enum vmm_event_kind kind, const char *text)
{
	ev->kind = kind;
	(void)snprintf(ev->text, sizeof(ev->text), "%s", text);
	return 1;
}

static int fail(struct vmm *v, struct vmm_event *ev, const char *text)
{
	v->dead = true;
	return tell(ev, VMM_EV_FATAL, text);
}

/* A follow-up that could not even be queued ends the operation like a refusal. */
static int next_step(struct vmm_event *ev, int r, enum vmm_event_kind if_failed)
{
	return r < 0 ? tell(ev, if_failed, strerror(-r)) : 0;
}

static void keep_tail(struct vmm *v, const char *p, size_t n)
{
	size_t drop;

	if (n > sizeof(v->tail)) {
		p += n - sizeof(v->tail);
		n = sizeof(v->tail);
	}
	drop = v->n_tail + n > sizeof(v->tail) ? v->n_tail + n - sizeof(v->tail) : 0;
	memmove(v->tail, v->tail + drop, v->n_tail - drop);
	v->n_tail -= drop;
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\r')
			continue;
		v->tail[v->n_tail++] =
			p[i] == '\n' || p[i] == '\t' || (p[i] >= 0x20 && p[i] < 0x7f) ? p[i] : '?';
	}
}

static int on_console(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	size_t n = json_is_string(data) ? json_string_length(data) : 0;

	if (n)
		keep_tail(v, json_string_value(data), n);
	if (n && v->n_console_reads < MAX_CONSOLE_READS && read_console(v) == 0)
		return 0;
	ev->kind = VMM_EV_CONSOLE;
	ev->console = v->tail;
	ev->console_len = v->n_tail;
	return 1;
}

static int add_share_chardev(struct vmm *v)
{
	json_t *backend = json_pack("{s:s, s:{s:{s:s, s:{s:s}}, s:b}}", "type", "socket", "data",
		"addr", "type", "fd", "data", "str", "share", "server", 0);

	return command(v, TAG_SHARE_CHARDEV, "chardev-add",
		json_pack("{s:s, s:o}", "id", "share", "backend", backend), -1);
}

static int add_share_device(struct vmm *v)
{
	return command(v, TAG_SHARE_DEVICE, "device_add",
		json_pack("{s:s, s:s, s:s, s:s, s:i}", "driver", "vhost-user-fs-pci", "id", "share",
			"chardev", "share", "tag", "sbx", "queue-size", 1024),
		-1);
}

/* The same as add_serial has given it at the start. */
static int add_ctl(struct vmm *v)
{
	v->n_ctl_tries++;
	return command(v, TAG_CTL_ADD, "device_add",
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "driver", "virtserialport", "id", "ctl",
			"bus", "serial.0", "chardev", "ctl", "nr", 1, "name", "sbx.ctl"),
		-1);
}

static int set_capabilities(struct vmm *v, enum tag tag)
{
	return command(v, tag, "migrate-set-capabilities",
		json_pack("{s:[{s:s, s:b}, {s:s, s:b}]}", "capabilities", "capability",
			"x-ignore-shared", "state", 1, "capability", "events", "state", 1),
		-1);
}

static int on_success(struct vmm *v, enum tag tag, const json_t *data, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_CONSOLE:
		return on_console(v, data, ev);
	case TAG_CTL_ADD:
		return tell(ev, VMM_EV_CTL_RENEWED, "");
	case TAG_SHARE_FD:
		return next_step(ev, add_share_chardev(v), VMM_EV_SHARE_FAILED);
	case TAG_SHARE_CHARDEV:
		return next_step(ev, add_share_device(v), VMM_EV_SHARE_FAILED);
	case TAG_SHARE_DEVICE:
		return tell(ev, VMM_EV_SHARE_ATTACHED, "");
	case TAG_SAVE_STOP:
		return next_step(ev, set_capabilities(v, TAG_SAVE_CAPS), VMM_EV_SAVE_FAILED);
	case TAG_SAVE_CAPS:
		return next_step(ev,
			command(v, TAG_SAVE_FD, "getfd", json_pack("{s:s}", "fdname", "state"),
				TAKE_FD(v->save_fd)),
			VMM_EV_SAVE_FAILED);
	case TAG_SAVE_FD:
		v->migrating = MIGRATE_SAVE;
		return next_step(ev,
			command(v, TAG_SAVE_MIGRATE, "migrate",
				json_pack("{s:s}", "uri", "fd:state"), -1),
			VMM_EV_SAVE_FAILED);
	case TAG_RESTORE_CAPS:
		v->migrating = MIGRATE_RESTORE;
		return next_step(ev,
			command(v, TAG_RESTORE_MIGRATE, "migrate-incoming",
				json_pack("{s:o}", "uri", json_sprintf("fd:%d", ARGS_FD_STATE)),
				-1),
			VMM_EV_RESTORE_FAILED);
	default:
		return 0;
	}
}

/* Gives back what the steps before it have taken. */
static void undo_share(struct vmm *v, enum tag tag)
{
	if (tag == TAG_SHARE_CHARDEV)
		(void)!command(
			v, TAG_SHARE_UNDO, "closefd", json_pack("{s:s}", "fdname", "share"), -1);
	if (tag == TAG_SHARE_DEVICE)
		(void)!command(
			v, TAG_SHARE_UNDO, "chardev-remove", json_pack("{s:s}", "id", "share"), -1);
}

static int on_failure(struct vmm *v, enum tag tag, const char *text, struct vmm_event *ev)
{
	switch (tag) {
	case TAG_PLAIN:
		return tell(ev, VMM_EV_REFUSED, text);
	case TAG_CONSOLE:
		return on_console(v, NULL, ev);
	case TAG_CTL_DEL:
		return fail(v, ev, text);
	case TAG_CTL_ADD:
		/* The old port lets go of its chardev a moment after DEVICE_DELETED. Without its
		 * wire the machine is of no use. */
		return v->n_ctl_tries < MAX_CTL_TRIES && add_ctl(v) == 0 ? 0 : fail(v, ev, text);
	case TAG_SHARE_FD:
	case TAG_SHARE_CHARDEV:
	case TAG_SHARE_DEVICE:
		undo_share(v, tag);
		return tell(ev, VMM_EV_SHARE_FAILED, text);
	case TAG_SAVE_STOP:
	case TAG_SAVE_CAPS:
	case TAG_SAVE_FD:
	case TAG_SAVE_MIGRATE:
		v->migrating = MIGRATE_NONE;
		fd_close(&v->save_fd);
		return tell(ev, VMM_EV_SAVE_FAILED, text);
	case TAG_RESTORE_CAPS:
	case TAG_RESTORE_MIGRATE:
		v->migrating = MIGRATE_NONE;
		return tell(ev, VMM_EV_RESTORE_FAILED, text);
	default:
		return 0;
	}
}

/* ---- events of qemu ---- */

static const char *str_field(const json_t *data, const char *key)
{
	const char *s = json_string_value(json_object_get(data, key));

	return s ? s : "";
}

static int on_shutdown(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	const char *reason = str_field(data, "reason");

	if (v->ending)
		return 0;
	v->ending = true;
	if (strcmp(reason, "guest-shutdown") != 0)
		return tell(ev, VMM_EV_RESET, "the guest panicked or rebooted");
	if (vmm_quit(v) < 0)
		vmm_kill(v);
	return tell(ev, VMM_EV_SHUTDOWN, "the guest powered off");
}

static int on_stop(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	/* Saving pauses too, and says so by VMM_EV_SAVED. */
	bool ours = v->save_fd >= 0 || v->migrating != MIGRATE_NONE;

	return v->ending || ours ? 0 : tell(ev, VMM_EV_PAUSED, "");
}

static int on_resume(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	return v->ending ? 0 : tell(ev, VMM_EV_RESUMED, "");
}

static int on_port(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	if (strcmp(str_field(data, "id"), "ctl") != 0)
		return 0;
	return tell(ev,
		json_is_true(json_object_get(data, "open")) ? VMM_EV_CTL_OPEN : VMM_EV_CTL_CLOSED,
		"");
}

static int on_deleted(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	if (!v->renewing || strcmp(str_field(data, "device"), "ctl") != 0)
		return 0;
	v->renewing = false;
	return add_ctl(v) < 0 ? fail(v, ev, "too many commands wait") : 0;
}

static int on_disk_error(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	bool full = json_is_true(json_object_get(data, "nospace")) &&
		    strcmp(str_field(data, "action"), "stop") == 0;

	return full ? tell(ev, VMM_EV_DISK_FULL, "the host's disk is full")
		    : tell(ev, VMM_EV_DISK_ERROR, "a disk of the guest had an error");
}

static int on_migration(struct vmm *v, const json_t *data, struct vmm_event *ev)
{
	const char *status = str_field(data, "status");
	bool saving = v->migrating == MIGRATE_SAVE;
	bool good = strcmp(status, "completed") == 0;

	if (v->migrating == MIGRATE_NONE || (!good && strcmp(status, "failed") != 0))
		return 0;
	v->migrating = MIGRATE_NONE;
	if (saving)
		return tell(ev, good ? VMM_EV_SAVED : VMM_EV_SAVE_FAILED,
			good ? "" : "qemu could not write the machine's state");
	return tell(ev, good ? VMM_EV_RESTORED : VMM_EV_RESTORE_FAILED,
		good ? "" : "qemu could not read the machine's state");
}

static const struct {
	const char *name;
	int (*on)(struct vmm *v, const json_t *data, struct vmm_event *ev);
} events[] = {
	{"SHUTDOWN", on_shutdown},
	{"STOP", on_stop},
	{"RESUME", on_resume},
	{"VSERPORT_CHANGE", on_port},
	{"DEVICE_DELETED", on_deleted},
	{"BLOCK_IO_ERROR", on_disk_error},
	{"MIGRATION", on_migration},
};

static int on_event(struct vmm *v, const struct qmp_item *it, struct vmm_event *ev)
{
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		if (strcmp(events[i].name, it->name) == 0)
			return events[i].on(v, it->data, ev);
	}
	return 0;
}

static int on_item(struct vmm *v, const struct qmp_item *it, struct vmm_event *ev)
{
	switch (it->kind) {
	case QMP_GREETED:
		return 0;
	case QMP_READY:
		if (v->restoring && set_capabilities(v, TAG_RESTORE_CAPS) < 0)
			return fail(v, ev, "too many commands wait");
		return tell(ev, VMM_EV_READY, "");
	case QMP_RESULT:
		return on_success(v, (enum tag)it->tag, it->data, ev);
	case QMP_ERROR:
		return on_failure(v, (enum tag)it->tag, it->text, ev);
	case QMP_EVENT:
		return on_event(v, it, ev);
	}
	return 0;
}

/* ---- reading ---- */

static int feed(struct vmm *v, struct vmm_event *ev)
{
	struct qmp_item it = {};
	struct err err;
	int r = qmp_feed(&v->qmp, &v->rest, &it, &err);

	if (r < 0)
		return fail(v, ev, err_text(&err, r));
	if (r == 0)
		return 0;
	r = on_item(v, &it, ev);
	qmp_item_done(&it);
	flush_out(v);
	return r;
}

/* 1: bytes are there, 0: none now, negative: the end. */
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
		return fail(v, ev, "qemu ended unexpectedly");
	v->dead = true;
	return tell(ev, VMM_EV_ENDED, "");
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
			r = feed(v, ret_ev);
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
		if (clock_mono_ms() >= vmm_deadline(v))
			return fail(v, ret_ev, "qemu does not answer");
	}
	return r;
}
