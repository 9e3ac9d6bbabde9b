/* SPDX-License-Identifier: Apache-2.0 */
#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

#define SECTOR 512u
#define SETUP_SECTS 0x1f1 /* Documentation/arch/x86/boot.rst: 0 means 4 */
#define MAGIC 0x202
#define MAX_STUB ((UINT8_MAX + 1) * SECTOR + STUB_MORE)

/* 0: the file is not a bzImage. */
static size_t stub_size(const uint8_t *p, size_t n)
{
	size_t size;

	if (n < MAGIC + 4 || memcmp(p + MAGIC, "HdrS", 4) != 0)
		return 0;
	size = ((p[SETUP_SECTS] ? p[SETUP_SECTS] : 4) + 1u) * SECTOR + STUB_MORE;
	return size <= n ? size : 0;
}

int stub_write(const char *dest, const char *kernel, struct err *err)
{
	AUTO_CLOSE int fd = open(kernel, O_RDONLY | O_CLOEXEC);
	AUTO_FREE uint8_t *buf = xmalloc(MAX_STUB);
	ssize_t n = fd < 0 ? -errno : fd_read_full(fd, buf, MAX_STUB);
	size_t size;

	if (n < 0)
		return err_errno(err, (int)n, "cannot read %s", kernel);
	size = stub_size(buf, (size_t)n);
	if (!size)
		return err_set(err, -ENOTSUP, "%s is not a bzImage", kernel);
	return file_save(dest, slice_of(buf, size), err);
}
