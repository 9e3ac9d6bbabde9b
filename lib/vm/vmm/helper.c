/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"

int helper_begin(pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return err_errno(err, -errno, "cannot start a helper process");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		return 0;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd_open(pid, 0);
	if (*ret_pidfd < 0) {
		int r = -errno;

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_errno(err, r, "cannot watch a helper process");
	}
	return 1;
}

int helper_end(pid_t pid, int *pidfd)
{
	int status = 0;

	fd_close(pidfd);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

void helper_kill(pid_t pid, int *pidfd)
{
	if (*pidfd < 0)
		return;
	(void)pidfd_send_signal(*pidfd, SIGKILL, NULL, 0);
	(void)helper_end(pid, pidfd);
}
