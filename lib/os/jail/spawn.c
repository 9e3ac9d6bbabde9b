/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "jail.h"
#include "jail_internal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | \
		CLONE_NEWCGROUP)

#define FEW_FILES 16384

/* What child and spawner say to each other; one packet each. After the last one the socket
 * closes by exec. */
enum sync_type { SYNC_READY = 1, SYNC_NOTIFY_FD, SYNC_FAILED, SYNC_GO };

struct sync_msg {
	enum sync_type type;
	int r;
	char text[ERR_MAX_TEXT];
};

static int sync_send(int sock, const struct sync_msg *m, int pass_fd)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	ssize_t n = fd_send(sock, &iov, 1, &pass_fd, pass_fd >= 0, 0);

	return n < 0 ? (int)n : 0;
}

/* 1 with a message, 0 when the other end closed, -ETIMEDOUT. *ret_fd is -1 or the caller's. */
static int sync_recv(int sock, uint64_t deadline_ms, struct sync_msg *ret_m, int *ret_fd)
{
	struct iovec iov = {.iov_base = ret_m, .iov_len = sizeof(*ret_m)};
	struct pollfd p = {.fd = sock, .events = POLLIN};
	size_t n_fds = 1;
	ssize_t n;

	*ret_fd = -1;
	for (;;) {
		uint64_t now = clock_mono_ms();

		n = poll(&p, 1, now >= deadline_ms ? 0 : (int)(deadline_ms - now));
		if (n > 0)
			break;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
	n = fd_recv(sock, &iov, 1, ret_fd, &n_fds, 0);
	if (n <= 0)
		return n == -ECONNRESET ? 0 : (int)n;
	ret_m->text[sizeof(ret_m->text) - 1] = '\0';
	return n == sizeof(*ret_m) && n_fds <= 1 ? 1 : -EBADMSG;
}

/* ---- the child ---- */

static void child_fail(const struct jail_state *s, int r, const struct err *err)
{
	struct sync_msg m = {.type = SYNC_FAILED, .r = r};

	(void)snprintf(m.text, sizeof(m.text), "%s", err_text(err, r));
	(void)sync_send(s->sync_fd, &m, -1);
	_exit(127);
}

/* Reports that the parent-death signal is set; the answer proves that the parent ran after that. */
static int shake_hands(const struct jail_state *s, struct err *err)
{
	struct sync_msg m = {.type = SYNC_READY};
	int fd, r = sync_send(s->sync_fd, &m, -1);

	if (r == 0)
		r = sync_recv(s->sync_fd, clock_mono_ms() + JAIL_START_TIMEOUT_MS, &m, &fd);
	if (r != 1 || m.type != SYNC_GO)
		return err_set(err, -ESRCH, "lock: the parent process has exited");
	return 0;
}

/* Two steps, because a target number may be another entry's source. stdin, stdout and stderr
 * come first, so that a plan can still give them away. */
static int place_fds(struct jail_state *s, struct err *err)
{
	const struct jail_plan *p = s->plan;
	int log = p->log_fd < 0 ? s->null_fd : p->log_fd;
	struct jail_fd all[JAIL_MAX_FDS + 3] = {{s->null_fd, 0}, {log, 1}, {log, 2}};
	size_t n = 3;
	int base = 3;

	for (size_t i = 0; i < p->n_fds; i++) {
		all[n++] = p->fds[i];
		base = MAX(base, p->fds[i].to + 1);
	}
	for (size_t i = 0; i < n; i++) {
		int high = fcntl(all[i].from, F_DUPFD_CLOEXEC, base);

		if (high < 0)
			return err_errno(
				err, -errno, "lock: cannot place descriptor %d", all[i].from);
		all[i].from = high;
	}
	s->sync_fd = fcntl(s->sync_fd, F_DUPFD_CLOEXEC, base);
	if (s->sync_fd < 0)
		return err_errno(err, -errno, "lock: cannot place the sync descriptor");
	for (size_t i = 0; i < n; i++)
		if (dup2(all[i].from, all[i].to) < 0)
			return err_errno(
				err, -errno, "lock: cannot place descriptor %d", all[i].to);
	return 0;
}

static bool jail_notifies(const struct jail_plan *p)
{
	return p->notify_paths || p->notify_changes || p->notify_full;
}

static int install_filters(struct jail_state *s, struct err *err)
{
	struct sync_msg m = {.type = SYNC_NOTIFY_FD};
	int r = filter_install(&s->filter, false);

	if (r < 0)
		return err_errno(err, r, "lock: cannot install the seccomp filter");
	if (!jail_notifies(s->plan))
		return 0;
	r = filter_install(&s->notify, true);
	if (r < 0)
		return err_errno(err, r, "lock: cannot install the seccomp notification");
	r = sync_send(s->sync_fd, &m, r);
	return r < 0 ? err_errno(err, r, "lock: cannot pass the notification descriptor") : 0;
}

static void child_main(struct jail_state *s) __attribute__((noreturn));
static void child_main(struct jail_state *s)
{
	static char *const no_env[] = {NULL};
	const struct jail_plan *p = s->plan;
	struct err err = {0};
	int r = jail_start(s, &err);

	if (r == 0)
		r = jail_enter(s, &err);
	if (r == 0)
		r = jail_files(s, &err);
	if (r == 0)
		r = place_fds(s, &err);
	if (r == 0)
		r = jail_lock(s, &err);
	if (r == 0)
		r = shake_hands(s, &err);
	if (r == 0)
		r = install_filters(s, &err);
	if (r == 0) {
		(void)syscall(SYS_execveat, s->program_fd, "", p->argv, p->envp ? p->envp : no_env,
			AT_EMPTY_PATH);
		r = err_errno(&err, -errno, "exec: %s", p->program);
	}
	child_fail(s, r, &err);
	_exit(127);
}

/* ---- the spawner ---- */

/* The number lies just above the limit that the child will have, so it can never come back. */
static int open_program(struct jail_state *s, struct err *err)
{
	AUTO_CLOSE int fd = open(s->plan->program, O_PATH | O_CLOEXEC);
	struct rlimit lim, raised;
	int r = 0;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", s->plan->program);
	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return err_errno(err, -errno, "cannot read the descriptor limit");
	s->nofile = MIN(s->row->limit.nofile, lim.rlim_max - 1);
	/* Half is left for processes outside of jails: all share the limit of descriptors in
	 * flight. */
	s->nofile = MIN(s->nofile, MAX(lim.rlim_max / 2, (rlim_t)FEW_FILES));
	raised = (struct rlimit){.rlim_cur = lim.rlim_max, .rlim_max = lim.rlim_max};
	(void)setrlimit(RLIMIT_NOFILE, &raised);
	/* not dup3: the caller may have that number in use */
	s->program_fd = fcntl(fd, F_DUPFD_CLOEXEC, (int)s->nofile);
	if (s->program_fd < 0)
		r = err_errno(err, -errno, "cannot use descriptor %d for %s", (int)s->nofile,
			s->plan->program);
	(void)setrlimit(RLIMIT_NOFILE, &lim);
	return r;
}

static int explain_clone(int r, struct err *err)
{
	if (r == -EPERM || r == -ENOSPC || r == -EUSERS || r == -EACCES)
		return err_errno(err, r,
			"fork: this host does not allow unprivileged user namespaces; as root, try: sysctl -w user.max_user_namespaces=10000 (Debian also: kernel.unprivileged_userns_clone=1)");
	return err_errno(err, r, "cannot fork into new namespaces");
}

static int fork_child(struct jail_state *s, struct jail_child *c, struct err *err)
{
	struct clone_args args = {.flags = NAMESPACES | CLONE_PIDFD,
		.pidfd = (uintptr_t)&c->pidfd,
		.exit_signal = SIGCHLD};
	long pid;

	if (s->row->host_net)
		args.flags &= ~(uint64_t)CLONE_NEWNET;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return explain_clone(-errno, err);
	if (pid == 0)
		child_main(s);
	c->pid = (pid_t)pid;
	return 0;
}

/* Until the socket closes by exec. */
static int watch_start(int sock, struct jail_child *c, struct err *err)
{
	uint64_t deadline = clock_mono_ms() + JAIL_START_TIMEOUT_MS;
	struct sync_msg m, go = {.type = SYNC_GO};
	bool ready = false;
	int fd, r;

	for (;;) {
		r = sync_recv(sock, deadline, &m, &fd);
		if (r == -ETIMEDOUT)
			return err_set(err, r, "not started within %d ms", JAIL_START_TIMEOUT_MS);
		if (r < 0)
			return err_errno(err, r, "cannot receive from the child process");
		if (r == 0)
			return ready ? 0
				     : err_set(err, -ECHILD,
					       "the child process exited during setup");
		if (m.type == SYNC_FAILED)
			return err_set(err, m.r, "%s", m.text);
		if (m.type == SYNC_NOTIFY_FD)
			c->notify_fd = fd;
		if (m.type != SYNC_READY)
			continue;
		ready = true;
		r = sync_send(sock, &go, -1);
		if (r < 0)
			return err_errno(err, r, "cannot reply to the child process");
	}
}

static int check_plan(const struct jail_plan *p, struct err *err)
{
	if (!jail_row(p->profile)->start)
		return err_set(err, -EINVAL, "the jail profile cannot start programs");
	if (p->n_fds > JAIL_MAX_FDS)
		return err_set(err, -EINVAL, "cannot pass more than %d descriptors", JAIL_MAX_FDS);
	for (size_t i = 0; i < p->n_fds; i++)
		if (p->fds[i].to < 0 || p->fds[i].to > 255 || p->fds[i].from < 0)
			return err_set(err, -EBADF, "cannot pass descriptor %d as %d",
				p->fds[i].from, p->fds[i].to);
	return 0;
}

static void state_done(struct jail_state *s)
{
	filter_done(&s->filter);
	filter_done(&s->notify);
	fd_close(&s->program_fd);
	fd_close(&s->null_fd);
}

static int prepare_spawn(struct jail_state *s, struct err *err)
{
	int r = s->null_fd < 0 ? err_errno(err, -errno, "cannot open /dev/null")
			       : check_plan(s->plan, err);

	if (r == 0)
		r = open_program(s, err);
	if (r == 0)
		r = filter_make_start(
			s->row, s->plan->special_files, s->program_fd, &s->filter, err);
	if (r == 0 && jail_notifies(s->plan))
		r = filter_make_notify(
			&(struct filter_notify){.paths = s->plan->notify_paths,
				.changes = s->plan->notify_changes,
				.full_at = s->plan->notify_full ? jail_full_at((unsigned)s->nofile)
								: 0},
			&s->notify, err);
	return r;
}

int jail_spawn(const struct jail_plan *plan, struct jail_child *ret_child, struct err *err)
{
	CLEANUP(state_done)
	struct jail_state s = {.plan = plan,
		.row = jail_row(plan->profile),
		.program_fd = -1,
		.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC),
		.uid = geteuid(),
		.gid = getegid()};
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};
	AUTO_CLOSE int ours = -1;
	AUTO_CLOSE int theirs = -1;
	int pair[2], r = prepare_spawn(&s, err);

	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = err_errno(err, -errno, "cannot create a socket pair");
	if (r < 0)
		return err_wrap(err, r, "cannot jail %s", s.row->name);
	ours = pair[0];
	theirs = s.sync_fd = pair[1];
	r = fork_child(&s, &c, err);
	fd_close(&theirs);
	if (r == 0)
		r = watch_start(ours, &c, err);
	if (r < 0) {
		jail_child_kill(&c);
		return err_wrap(err, r, "cannot jail %s", s.row->name);
	}
	c.nofile = (unsigned)s.nofile;
	*ret_child = c;
	return 0;
}

void jail_child_kill(struct jail_child *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	siginfo_t si;

	if (c->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
		if (poll(&p, 1, JAIL_START_TIMEOUT_MS) > 0)
			(void)waitid(P_PIDFD, (id_t)c->pidfd, &si, WEXITED);
	}
	fd_close(&c->pidfd);
	fd_close(&c->notify_fd);
	c->pid = 0;
}
