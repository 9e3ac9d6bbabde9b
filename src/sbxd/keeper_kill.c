#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "keepers.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define MAX_ANCESTORS 8

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

static void kill_pidfd(int pidfd)
{
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

void keeper_kill(struct keeper *k)
{
	if (k->pidfd < 0 || k->pid <= 1)
		return;
	log_warn("killing keeper of %s (pid %d)", k->id, (int)k->pid);
	/* It leads its own group. Its number cannot be somebody else's while its pidfd lives. */
	if (!has_ended(k->pidfd))
		(void)kill(-k->pid, SIGKILL);
	kill_pidfd(k->pidfd);
	if (k->qemu_pidfd >= 0)
		kill_pidfd(k->qemu_pidfd);
}

/* The parent as /proc says, 0 when there is none. */
static pid_t parent_of(pid_t pid)
{
	char path[64];
	AUTO_FREE char *text = NULL;
	const char *p;
	size_t n;
	int ppid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_load(path, 4096, &text, &n, NULL) < 0)
		return 0;
	/* The name in parentheses may hold anything; the last one ends it. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %*c %d", &ppid) != 1)
		return 0;
	return ppid;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
	for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
		pid = parent_of(pid);
		if (pid == ancestor)
			return true;
	}
	return false;
}

void keeper_note_qemu(struct keeper *k, uint32_t pid)
{
	int fd;

	fd_close(&k->qemu_pidfd);
	if (pid <= 1 || pid > INT32_MAX)
		return;
	/* First hold it, then look: the number cannot change hands in between. */
	fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (fd >= 0 && descends_from((pid_t)pid, k->pid) && !has_ended(fd))
		k->qemu_pidfd = fd;
	else
		fd_close(&fd);
}
