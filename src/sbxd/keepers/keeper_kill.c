/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "keepers_internal.h"
#include "src/sbxd/hands/hands.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"

#define MAX_ANCESTORS 8

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

void keeper_kill(struct keeper *k)
{
	if (k->pidfd < 0 || k->pid <= 1)
		return;
	log_warn("killing keeper of %s (pid %d)", k->id, (int)k->pid);
	hands_kill_keeper(k->pidfd, k->qemu_pidfd);
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
	for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
		pid = child_parent_of(pid);
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
	/* Open the pidfd before the check: the number cannot be reused in between. */
	fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (fd >= 0 && descends_from((pid_t)pid, k->pid) && !has_ended(fd))
		k->qemu_pidfd = fd;
	else
		fd_close(&fd);
}
