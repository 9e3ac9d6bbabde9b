/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "quarantine.h"

/* The exit status; a signal as a shell counts it. */
static int wait_jailed(struct jail_child *child)
{
	struct pollfd pfd = {.fd = child->pidfd, .events = POLLIN};
	siginfo_t si = {0};
	int n;

	do
		n = poll(&pfd, 1, QUARANTINE_RUN_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	if (waitid(P_PIDFD, (id_t)child->pidfd, &si, WEXITED) < 0)
		return -errno;
	fd_close(&child->pidfd);
	return si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status;
}

/* A file without a name, so that the jailed git has the descriptor only. */
static int open_output(const struct quarantine *q)
{
	AUTO_FREE char *path = xasprintf("%s/output", q->dir);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

int quarantine_run(struct quarantine *q, const char *const *argv, size_t max, char **ret_out,
	size_t *ret_n, struct err *err)
{
	AUTO_CLOSE int out = open_output(q), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct quarantine_fds fds = {
		.from_guest = null, .to_guest = null, .in = null, .out = out, .err = null};
	struct jail_child child = {.pidfd = -1, .notify_fd = -1};
	int r, status;

	if (out < 0 || null < 0)
		return err_errno(err, out < 0 ? out : -EIO, "cannot create a file in %s", q->dir);
	r = quarantine_spawn(q, argv, &fds, &child, err);
	if (r < 0)
		return r;
	status = wait_jailed(&child);
	jail_child_kill(&child);
	r = status < 0 ? status : fd_load(out, max, ret_out, ret_n);
	return r < 0 ? err_errno(err, r, "git %s failed", argv[1]) : status;
}
