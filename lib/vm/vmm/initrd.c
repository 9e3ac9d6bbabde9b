/* SPDX-License-Identifier: Apache-2.0 */
#include "initrd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

/* What the kernel's unpacker expects; device nodes come from devtmpfs. */
static const struct {
	const char *name;
	unsigned mode;
} folders[] = {
	{"dev", S_IFDIR | 0755},
	{"proc", S_IFDIR | 0555},
	{"root", S_IFDIR | 0700},
	{"sys", S_IFDIR | 0555},
};

struct writer {
	int fd;
	uint64_t n;
	uint32_t ino;
};

static int put_initrd(struct writer *w, const void *p, size_t n)
{
	int r = fd_write_all(w->fd, p, n);

	if (r == 0)
		w->n += n;
	return r;
}

static int pad4_initrd(struct writer *w)
{
	return put_initrd(w, "\0\0\0", (4 - w->n % 4) % 4);
}

/* One newc header: thirteen numbers of eight hex digits, then the name with its NUL. Time, owner
 * and device are zero, inode numbers count up. */
static int put_header(struct writer *w, const char *name, unsigned mode, uint64_t size)
{
	char h[128];
	int len = snprintf(h, sizeof(h),
		"070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", ++w->ino, mode, 0, 0,
		1, 0, (unsigned)size, 0, 0, 0, 0, (unsigned)strlen(name) + 1, 0);
	int r = put_initrd(w, h, (size_t)len);

	if (r == 0)
		r = put_initrd(w, name, strlen(name) + 1);
	return r < 0 ? r : pad4_initrd(w);
}

static int copy_file(struct writer *w, int fd, uint64_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(w->fd, fd, NULL, MIN(size, (uint64_t)1 << 30));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* shorter than it was a moment ago */
		size -= (uint64_t)n;
		w->n += (uint64_t)n;
	}
	return pad4_initrd(w);
}

static int open_input(const char *path, uint64_t max, uint64_t *ret_size, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > max)
		return err_set(err, -EINVAL, "%s is not a regular file of a valid size", path);
	*ret_size = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

static int write_own(struct writer *w, int init, uint64_t size)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(folders) && r == 0; i++)
		r = put_header(w, folders[i].name, folders[i].mode, 0);
	if (r == 0)
		r = put_header(w, "init", S_IFREG | 0755, size);
	if (r == 0)
		r = copy_file(w, init, size);
	return r < 0 ? r : put_header(w, "TRAILER!!!", 0, 0);
}

static int write_all(int fd, const char *init, const char *modules, struct err *err)
{
	struct writer w = {.fd = fd};
	AUTO_CLOSE int in = -1, mod = -1;
	uint64_t size, mod_size = 0;
	int r;

	in = open_input(init, INITRD_MAX_INIT, &size, err);
	if (in < 0)
		return in;
	if (modules) {
		mod = open_input(modules, INITRD_MAX_MODULES, &mod_size, err);
		if (mod < 0)
			return mod;
	}
	r = write_own(&w, in, size);
	if (r == 0 && modules)
		r = copy_file(&w, mod, mod_size);
	return r < 0 ? err_errno(err, r, "cannot write the initrd") : 0;
}

int initrd_write(const char *dest, const char *init, const char *modules, struct err *err)
{
	AUTO_FREE char *temp = xasprintf("%s.XXXXXX", dest);
	AUTO_CLOSE int fd = mkostemp(temp, O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot create %s", temp);
	r = write_all(fd, init, modules, err);
	/* Synced: after a power failure the name must not refer to an empty file. */
	if (r == 0 && (fdatasync(fd) < 0 || rename(temp, dest) < 0))
		r = err_errno(err, -errno, "cannot put %s in place", dest);
	if (r < 0)
		(void)unlink(temp);
	return r;
}
