/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/os/worker/worker.h"

static bool wait_readable(int fd, uint64_t end_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (;;) {
		uint64_t now = clock_mono_ms();
		int n;

		if (now >= end_ms)
			return false;
		n = poll(&p, 1, (int)(end_ms - now));
		if (n > 0)
			return true;
	}
}

/* Collects the first bytes of the child's output, then waits for its exit. */
int tool_finish(struct jail_child *child, int out, char *said, size_t size, int timeout_ms)
{
	uint64_t end = clock_mono_ms() + (uint64_t)timeout_ms;
	ssize_t k = 1;
	size_t n = 0;
	int status;

	while (k > 0 && wait_readable(out, end)) {
		char scrap[256];

		k = read(out, scrap, sizeof(scrap));
		for (ssize_t i = 0; i < k && n + 1 < size; i++)
			said[n++] = scrap[i] >= 0x20 && scrap[i] < 0x7f ? scrap[i] : ' ';
	}
	said[n] = 0;
	if (k > 0 || !wait_readable(child->pidfd, end)) {
		worker_end(child);
		return -ETIMEDOUT;
	}
	status = worker_reap(child);
	return status < 0 ? 128 : status;
}

int tool_run(const char *const *argv, char *said, size_t size, int timeout_ms)
{
	struct jail_child child = {.pidfd = -1, .notify_fd = -1};
	AUTO_CLOSE int rd = -1, wr = -1;
	posix_spawn_file_actions_t fa;
	const char *const env[] = {"LC_ALL=C", NULL};
	int p[2], r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	rd = p[0];
	wr = p[1];
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, wr, 1);
	posix_spawn_file_actions_adddup2(&fa, wr, 2);
	r = posix_spawn(&child.pid, argv[0], &fa, NULL, (char *const *)argv, (char *const *)env);
	posix_spawn_file_actions_destroy(&fa);
	if (r != 0)
		return -r;
	fd_close(&wr);
	child.pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
	r = tool_finish(&child, rd, said, size, timeout_ms);
	fd_close(&child.pidfd);
	return r;
}
