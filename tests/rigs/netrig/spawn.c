/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn - the two programs, through lib/os/jail as the keeper starts them, or plainly with fd 3.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/os/jail/jail.h"

static int spawn_jailed(
	const struct rig *r, bool egress, int sock, struct rig_worker *w, struct err *err)
{
	char *argv[] = {egress ? (char *)"sbx-egress" : (char *)"sbx-edge", NULL};
	const struct jail_fd fds[] = {{sock, 3}};
	const struct jail_plan plan = {
		.profile = egress ? JAIL_EGRESS : JAIL_EDGE,
		.program = egress ? r->o.egress : r->o.edge,
		.argv = argv,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = STDERR_FILENO,
	};
	struct jail_child child;
	int n = jail_spawn(&plan, &child, err);

	if (n < 0)
		return n;
	w->pid = child.pid;
	w->pidfd = child.pidfd;
	return 0;
}

static void exec_plainly(const char *program, int sock)
{
	char *const argv[] = {(char *)program, NULL}, *const none[] = {NULL};
	int high = fcntl(sock, F_DUPFD, 100); /* so that dup2 always clears close-on-exec */

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(high, 3) == 3) {
		sigset_t all;

		(void)sigemptyset(&all);
		(void)sigprocmask(SIG_SETMASK, &all, NULL);
		(void)close_range(4, ~0U, 0);
		(void)execve(program, argv, none);
	}
	_exit(127);
}

static int spawn_plainly(
	const struct rig *r, bool egress, int sock, struct rig_worker *w, struct err *err)
{
	const char *program = egress ? r->o.egress : r->o.edge;
	pid_t pid = fork();

	if (pid == 0)
		exec_plainly(program, sock);
	if (pid < 0)
		return err_errno(err, -errno, "starting %s", program);
	w->pid = pid;
	w->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return w->pidfd < 0 ? err_errno(err, -errno, "watching %s", program) : 0;
}

static void pin(const struct rig *r, pid_t pid)
{
	unsigned long mask = r->o.cpu_list ? strtoul(r->o.cpu_list, NULL, 16) : 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < 8 * sizeof(mask); i++)
		if (mask & (1UL << i))
			CPU_SET(i, &set);
	if (mask && sched_setaffinity(pid, sizeof(set), &set) < 0)
		perror("netrig: pinning");
}

int rig_spawn(struct rig *r, bool egress, struct rig_worker *w, struct err *err)
{
	struct loop_key on_msg = {.kind = egress ? RIG_EV_EGRESS : RIG_EV_EDGE, .gen = ++w->gen};
	struct loop_key on_end = {
		.kind = egress ? RIG_EV_EGRESS_END : RIG_EV_EDGE_END, .gen = w->gen};
	AUTO_CLOSE int theirs = -1;
	int fds[2], n = ipc_pair(fds), room = 1 << 20;

	if (n < 0)
		return err_errno(err, n, "making a channel");
	w->sock = fds[0];
	theirs = fds[1];
	(void)setsockopt(w->sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	n = r->o.jailed ? spawn_jailed(r, egress, theirs, w, err)
			: spawn_plainly(r, egress, theirs, w, err);
	if (n < 0) {
		fd_close(&w->sock);
		return n;
	}
	pin(r, w->pid);
	w->starts++;
	n = loop_add(&r->loop, w->sock, EPOLLIN, on_msg);
	return n < 0 ? n : loop_add(&r->loop, w->pidfd, EPOLLIN, on_end);
}

void rig_kill(struct rig *r, struct rig_worker *w)
{
	struct rusage used;

	if (w->sock >= 0)
		loop_del(&r->loop, w->sock);
	fd_close(&w->sock);
	if (w->pid <= 0)
		return;
	loop_del(&r->loop, w->pidfd);
	fd_close(&w->pidfd);
	(void)kill(w->pid, SIGKILL);
	if (wait4(w->pid, NULL, 0, &used) == w->pid)
		w->ended_peak_kib = MAX(w->ended_peak_kib, (uint64_t)used.ru_maxrss);
	w->pid = 0;
	w->ends++;
	w->gen++;
}
