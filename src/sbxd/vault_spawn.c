#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "lib/base/fd.h"
#include "lib/base/keepenv.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/settings/settings.h"
#include "vault_link.h"

#define SOCKET_FD 3
#define CHANNEL_FD 4

/* In the child. Its own session, as a keeper's: nothing of sbxd's takes it along. */
static void become_vault(
	const char *program, char *const *argv, char *const *env, const int fds[2], int log_fd)
{
	int null = open("/dev/null", O_RDWR);
	/* Out of the way first: each may be one of 0 to 4. */
	int listener = fcntl(fds[0], F_DUPFD, 16), channel = fcntl(fds[1], F_DUPFD, 16);

	(void)setsid();
	child_reset_signals();
	log_fd = fcntl(log_fd, F_DUPFD, 16);
	if (null < 0 || listener < 0 || channel < 0 || log_fd < 0 || dup2(null, 0) < 0 ||
		dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0 || dup2(listener, SOCKET_FD) < 0 ||
		dup2(channel, CHANNEL_FD) < 0)
		_exit(126);
	(void)syscall(SYS_close_range, CHANNEL_FD + 1, ~0u, 0);
	(void)execve(program, argv, env);
	_exit(127);
}

int vault_spawn(int listener, int channel, struct err *err)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-vault-run");
	AUTO_FREE char *log = paths_get(PATHS_STATE, "vault.log");
	AUTO_FREE char *key = NULL;
	AUTO_SETTINGS struct settings set = {0};
	AUTO_CLOSE int log_fd = -1;
	char *env[KEEPENV_MAX + 1];
	char *argv[] = {(char *)"sbx-vault-run", NULL, NULL};
	int pidfd, r = settings_load(&set, err);
	pid_t pid;

	if (r < 0)
		return r;
	if (access(program, X_OK) < 0)
		return err_errno(err, -errno, "the vault program %s cannot be run", program);
	log_fd = child_open_log(log, err);
	if (log_fd < 0)
		return log_fd;
	argv[1] = key = xasprintf("--key=%s", settings_get(&set, SETTINGS_VAULT_KEY));
	(void)keepenv_pick(env);
	pid = fork();
	if (pid == 0)
		become_vault(program, argv, env, (const int[]){listener, channel}, log_fd);
	if (pid < 0)
		return err_errno(err, -errno, "starting the vault");
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_errno(err, r, "watching the vault");
	}
	return pidfd;
}
