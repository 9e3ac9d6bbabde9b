/* SPDX-License-Identifier: Apache-2.0 */
#include "ship_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"

extern char **environ;

static int batch_file(struct slice batch)
{
	AUTO_CLOSE int fd = memfd_create("records", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, batch.p, batch.n);
	if (r < 0)
		return r;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : TAKE_FD(fd);
}

/* With the signals of a new program. */
static int start_command(const char *const *argv, int input, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = posix_spawnp(ret, argv[0], &files, &attr, (char *const *)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)posix_spawnattr_destroy(&attr);
	return -r;
}

static bool ends_within(pid_t pid, unsigned seconds)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, (int)seconds * 1000) == 1;
}

int ship_run(const char *const *argv, struct slice batch, unsigned seconds, struct err *err)
{
	AUTO_CLOSE int input = batch_file(batch);
	pid_t pid = -1;
	int status = 0, r = input < 0 ? input : start_command(argv, input, &pid);

	if (r < 0)
		return err_errno(err, r, "cannot execute %s", argv[0]);
	if (!ends_within(pid, seconds)) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		return err_set(err, -ETIME, "%s did not exit within %u s", argv[0], seconds);
	}
	(void)waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		return err_set(err, -EIO, "%s was killed by signal %d", argv[0], WTERMSIG(status));
	if (WEXITSTATUS(status))
		return err_set(err, -EIO, "%s exited with status %d", argv[0], WEXITSTATUS(status));
	return 0;
}
