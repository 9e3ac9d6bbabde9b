/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "hide_internal.h"

#define PAGE 4096
#define MAX_FDS 512

/* The string may end just before unmapped memory. */
int hide_read_name(pid_t pid, uint64_t addr, char buf[PATH_MAX])
{
	size_t n = 0;

	while (n < PATH_MAX) {
		size_t part = MIN(PAGE - (addr + n) % PAGE, PATH_MAX - n);
		struct iovec to = {.iov_base = buf + n, .iov_len = part};
		struct iovec from = {.iov_base = (void *)(uintptr_t)(addr + n), .iov_len = part};
		ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);

		if (got <= 0)
			return got < 0 ? -errno : -EFAULT;
		if (memchr(buf + n, '\0', (size_t)got))
			return 0;
		n += (size_t)got;
	}
	return -ENAMETOOLONG;
}

static int compare_fds(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

int hide_keep_fds(const int *fds, size_t n)
{
	int sorted[MAX_FDS];
	unsigned from = 0;

	if (n > MAX_FDS)
		return -E2BIG;
	memcpy(sorted, fds, n * sizeof(fds[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_fds);
	for (size_t i = 0; i < n; i++) {
		if (sorted[i] < 0)
			continue;
		if ((unsigned)sorted[i] > from && close_range(from, (unsigned)sorted[i] - 1, 0) < 0)
			return -errno;
		from = (unsigned)sorted[i] + 1;
	}
	return close_range(from, ~0U, 0) < 0 ? -errno : 0;
}
