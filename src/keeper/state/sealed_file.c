/* SPDX-License-Identifier: Apache-2.0 */
#include "sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include "lib/base/fs/fd.h"

int sealed_file_make(const char *name, struct slice text)
{
	AUTO_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = text.n ? fd_write_all(fd, text.p, text.n) : 0;
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int sealed_file_open(int fd)
{
	char path[64];
	int r;

	if (fd < 0)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}
