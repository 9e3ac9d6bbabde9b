/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_hold HOST GUEST FD CMD... - runs CMD with the vhost-user socket of a share at the
 * descriptor FD.
 *
 * The share is the one that a keeper starts: jailed virtiofsd, scaffold, seccomp with its word
 * about room. For bench/files, which puts it and a virtiofsd of the plain command line into one
 * machine.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/str.h"
#include "share.h"

/* Until the child has ended. Lookups that take the last descriptors continue immediately: here the
 * bench makes the guest forget. */
static void serve_hold(const struct room *room, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p[] = {{.fd = pidfd, .events = POLLIN}, {.fd = room->fd, .events = POLLIN}};
	struct room_wait w;

	while (pidfd >= 0 && poll(p, 2, -1) >= 0 && !p[0].revents) {
		int r = room_next(room, &w);

		if (r == 0)
			room_go_on(room, w.id);
		else if (r != -EAGAIN)
			p[1].fd = -1;
	}
	fd_close(&pidfd);
}

static int run_hold(char **argv, const struct share *share, int at)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(share->vhost_fd, at) == at)
			(void)execvp(argv[0], argv);
		(void)fprintf(stderr, "share_hold: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (pid > 0)
		serve_hold(&share->room, pid);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct share share = SHARE_EMPTY;
	struct err err = {0};
	uint64_t at;
	int r;

	if (argc < 5 || str_to_u64(argv[3], 3, 1000, &at) < 0) {
		(void)fprintf(stderr, "usage: share_hold HOST GUEST FD CMD...\n");
		return 2;
	}
	const struct share_mount mount = {argv[1], argv[2], false};
	const struct share_config cfg = {
		.mounts = &mount, .n_mounts = 1, .room = true, .log_fd = STDERR_FILENO};

	/* the parent stops this process */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	r = share_start(&cfg, &share, &err);
	if (r < 0) {
		(void)fprintf(stderr, "share_hold: %s\n", err_text(&err, r));
		return 1;
	}
	r = run_hold(argv + 4, &share, (int)at);
	share_stop(&share);
	return r;
}
