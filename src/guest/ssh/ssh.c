/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "hangup.h"
#include "lib/base/err.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "sshd_config.h"

#define SSHD "/usr/sbin/sshd"
#define N_PARTS 3
#define TERM_MS 500

/* One connection. */
struct serve {
	const struct guest_user *user;
	const struct env *env;
	char dir[64];
	char *config;
	bool remote;
};

static const char *const part_names[N_PARTS] = {"host_key", "host_key-cert.pub", "user_key.pub"};

static char *path_in(const struct serve *s, const char *name)
{
	return xasprintf("%s/%s", s->dir, name);
}

static int put_file(const struct serve *s, const char *name, const void *p, size_t n)
{
	AUTO_FREE char *path = path_in(s, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || fchown(fd, s->user->uid, s->user->gid) < 0)
		return -errno;
	return fd_write_all(fd, p, n);
}

/* The next n bytes of stdin, and no more: the client's begin after the last part. */
static int take_part(const struct serve *s, const char *name, const char *length)
{
	char part[SSH_MAX_PART];
	uint64_t n;
	int r;

	if (str_to_u64(length, 1, SSH_MAX_PART, &n) < 0)
		return -EINVAL;
	if (fd_read_full(0, part, (size_t)n) != (ssize_t)n)
		return -EPIPE;
	r = put_file(s, name, part, (size_t)n);
	explicit_bzero(part, sizeof(part));
	return r;
}

static int make_dir(struct serve *s)
{
	(void)mkdir("/run/sbx", 0755);
	(void)snprintf(s->dir, sizeof(s->dir), "/run/sbx/ssh.XXXXXX");
	if (!mkdtemp(s->dir))
		return -errno;
	return chown(s->dir, s->user->uid, s->user->gid) < 0 ? -errno : 0;
}

static int prepare_files(struct serve *s, char **argv)
{
	AUTO_FREE char *text = NULL;
	int r = make_dir(s);

	for (int i = 0; r == 0 && i < N_PARTS; i++)
		r = take_part(s, part_names[i], argv[1 + i]);
	if (r < 0)
		return r;
	text = sshd_config_text(&(struct sshd_want){
		.dir = s->dir, .user = s->user->name, .env = s->env->v, .remote = s->remote});
	s->config = path_in(s, "sshd_config");
	return put_file(s, "sshd_config", text, strlen(text));
}

static void clean_up(const struct serve *s)
{
	for (int i = 0; i < N_PARTS; i++) {
		AUTO_FREE char *path = path_in(s, part_names[i]);

		(void)unlink(path);
	}
	if (s->config)
		(void)unlink(s->config);
	(void)rmdir(s->dir);
}

static void __attribute__((noreturn)) become_sshd(const struct serve *s)
{
	char *argv[] = {(char *)SSHD, (char *)"-i", (char *)"-e", (char *)"-f", s->config, NULL};
	const struct guest_user *u = s->user;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setgroups(u->n_groups, u->groups) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 ||
		setresuid(u->uid, u->uid, u->uid) < 0)
		_exit(1);
	if (chdir(u->home) < 0)
		(void)!chdir("/");
	(void)execve(SSHD, argv, s->env->v);
	(void)dprintf(2, "cannot run %s: %s\n", SSHD, strerror(errno));
	_exit(1);
}

/* sshd has the pipes now; a copy here would keep the connection open. */
static void let_pipes_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
}

static bool has_ended(pid_t sshd, int *ret_status)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == sshd) {
			*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
			return true;
		}
	return false;
}

/* Until sshd has ended, or the exec's process, whose end is a SIGHUP here. */
static int watch_sshd(pid_t sshd, const sigset_t *set)
{
	const struct timespec grace = {.tv_nsec = TERM_MS * 1000000L};
	int status = 1, sig = 0;

	while (!has_ended(sshd, &status)) {
		sig = sig == SIGHUP ? sigtimedwait(set, NULL, &grace) : sigwaitinfo(set, NULL);
		if (sig == SIGHUP)
			(void)kill(sshd, SIGTERM);
		else if (sig < 0 && errno == EAGAIN)
			(void)kill(sshd, SIGKILL);
	}
	return status;
}

/* In the second process. */
static int supervise_sshd(struct serve *s, pid_t client)
{
	struct hangup h;
	sigset_t set;
	int status;
	pid_t sshd;

	(void)setsid();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)prctl(PR_SET_PDEATHSIG, SIGHUP);
	if (getppid() != client)
		(void)raise(SIGHUP);
	hangup_note(&h);
	sshd = fork();
	if (sshd == 0)
		become_sshd(s);
	let_pipes_go();
	status = sshd < 0 ? 1 : watch_sshd(sshd, &set);
	hangup_end(&h);
	clean_up(s);
	return status;
}

/* In the exec's process: a signal ends it, and the other one notices. */
static int wait_for(pid_t pid)
{
	int status;

	let_pipes_go();
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int fail_serve(const struct serve *s, const char *what, int r)
{
	(void)dprintf(2, "%s: %s\n", what, strerror(-r));
	clean_up(s);
	return 1;
}

int ssh_serve(char **argv, const struct guest_user *user, const struct env *env)
{
	struct serve s = {.user = user, .env = env};
	pid_t pid, self = getpid();
	int r;

	for (int i = 1; i <= N_PARTS; i++)
		if (!argv[i])
			return 2;
	s.remote = argv[1 + N_PARTS] && !strcmp(argv[1 + N_PARTS], "remote");
	if (argv[1 + N_PARTS] && (!s.remote || argv[2 + N_PARTS]))
		return 2;
	if (access(SSHD, X_OK) < 0) {
		(void)dprintf(2, "no SSH server\n");
		return SSH_NO_SERVER;
	}
	r = prepare_files(&s, argv);
	if (r < 0)
		return fail_serve(&s, "cannot prepare the SSH server", r);
	pid = fork();
	if (pid < 0)
		return fail_serve(&s, "cannot start the SSH server", -errno);
	if (pid == 0)
		_exit(supervise_sshd(&s, self));
	r = wait_for(pid);
	free(s.config);
	return r;
}
