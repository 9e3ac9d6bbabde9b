/* SPDX-License-Identifier: Apache-2.0 */
#include "hangup.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/str.h"

#define STEP_MS 20

void hangup_note(struct hangup *h)
{
	(void)fstat(0, &h->pipes[0]);
	(void)fstat(1, &h->pipes[1]);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512];
	const char *end;
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, f);
	(void)fclose(f);
	line[n] = '\0';
	end = strrchr(line, ')'); /* the name of a program may have spaces */
	return end && n > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

static bool is_ours(pid_t pid)
{
	for (int depth = 0; pid > 1 && depth < 1000; depth++) {
		pid = parent_of(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}

/* Calls fn with each descendant; stops and gives true when fn does. */
static bool each_of_ours(bool (*fn)(const struct hangup *h, pid_t pid), const struct hangup *h)
{
	AUTO_DIR DIR *d = opendir("/proc");
	struct dirent *e;
	bool any = false;
	uint64_t pid;

	while ((e = dir_next(d)))
		if (str_to_u64(e->d_name, 2, INT32_MAX, &pid) == 0 && is_ours((pid_t)pid))
			any = fn(h, (pid_t)pid) || any;
	return any;
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void wait_a_step(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
	reap_all();
}

/* ---- processes of sshd ---- */

static bool is_pipe(const struct hangup *h, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	for (int i = 0; i < 2; i++)
		if (st.st_dev == h->pipes[i].st_dev && st.st_ino == h->pipes[i].st_ino)
			return true;
	return false;
}

static bool kill_sshd(const struct hangup *h, pid_t pid)
{
	char path[64], one[400];
	AUTO_DIR DIR *d = NULL;
	struct dirent *e;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while ((e = dir_next(d))) {
		(void)snprintf(one, sizeof(one), "%s/%s", path, e->d_name);
		if (is_pipe(h, one))
			return kill(pid, SIGKILL) == 0;
	}
	return false;
}

/* ---- programs of its sessions ---- */

/* Whether the other end of a pipe, socket or terminal of that process is closed. */
static bool is_cut(int process, int fd)
{
	AUTO_CLOSE int copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	struct pollfd pfd = {.fd = copy};
	struct stat st;

	if (copy < 0 || fstat(copy, &st) < 0 ||
		(!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) && !S_ISCHR(st.st_mode)))
		return false;
	return poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR);
}

/* A program in the background may have a finished `echo |` as its stdin. */
static bool holds_connection(pid_t pid)
{
	AUTO_CLOSE int process = (int)syscall(SYS_pidfd_open, pid, 0);

	return process >= 0 && (is_cut(process, 1) || is_cut(process, 2) ||
				       (getsid(pid) == pid && is_cut(process, 0)));
}

static void signal_session(pid_t session, int signo)
{
	AUTO_DIR DIR *d = opendir("/proc");
	struct dirent *e;
	uint64_t pid;

	while ((e = dir_next(d)))
		if (str_to_u64(e->d_name, 2, INT32_MAX, &pid) == 0 && getsid((pid_t)pid) == session)
			(void)kill((pid_t)pid, signo);
}

/* As the kernel does when a terminal is closed. */
static bool hang_up(const struct hangup *h, pid_t pid)
{
	pid_t session = getsid(pid);

	if (!holds_connection(pid))
		return false;
	if (session > 0 && session != getsid(0)) {
		signal_session(session, SIGHUP);
		signal_session(session, SIGCONT);
	}
	return true;
}

static bool kill_holder(const struct hangup *h, pid_t pid)
{
	return holds_connection(pid) && kill(pid, SIGKILL) == 0;
}

static bool is_holder(const struct hangup *h, pid_t pid)
{
	return holds_connection(pid);
}

void hangup_end(const struct hangup *h)
{
	uint64_t until = clock_mono_ms() + HANGUP_GRACE_MS;

	while (each_of_ours(kill_sshd, h) && clock_mono_ms() < until)
		wait_a_step();
	if (!each_of_ours(hang_up, h))
		return;
	until = clock_mono_ms() + HANGUP_GRACE_MS;
	do
		wait_a_step();
	while (each_of_ours(is_holder, h) && clock_mono_ms() < until);
	(void)each_of_ours(kill_holder, h);
	reap_all();
}
