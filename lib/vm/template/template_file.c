/* SPDX-License-Identifier: Apache-2.0 */
#include "template_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/hex.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

char *template_top(const char *name)
{
	return name ? paths_get(PATHS_DATA, "templates/%s", name)
		    : paths_get(PATHS_DATA, "templates");
}

char *template_store(const char *name)
{
	return name ? paths_get(PATHS_DATA, "templates/.store/%s", name)
		    : paths_get(PATHS_DATA, "templates/.store");
}

bool template_is_id(const char *s)
{
	return hex_is(s, TEMPLATE_ID_LEN);
}

static bool is_plain(char c)
{
	return (unsigned char)c < 0x80 && (isalnum((unsigned char)c) || c == '.' || c == '-');
}

/* As the word of a spec (lib/rules/spec), and never to be mistaken for an id. */
bool template_is_name(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > TEMPLATE_MAX_NAME || template_is_id(s) || s[0] == '.' || s[0] == '-' ||
		s[n - 1] == '.' || s[n - 1] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_plain(s[i]))
			return false;
	return true;
}

int template_make_store(struct err *err)
{
	AUTO_FREE char *store = template_store(NULL);

	return paths_make(store, err);
}

int template_lock(int *ret_fd, struct err *err)
{
	AUTO_FREE char *path = template_store(".lock");
	int r = template_make_store(err);

	if (r == 0)
		r = file_lock(path, TEMPLATE_LOCK_MS, err);
	if (r == -EBUSY)
		return err_set(err, r,
			"another command is changing the templates: try again when it has finished");
	*ret_fd = r;
	return MIN(r, 0);
}

/* At the same offset in both. Between two file systems copy_file_range may fail. */
static ssize_t copy_some(int in, int out, off_t *at, size_t n)
{
	off_t to = *at;
	ssize_t k = copy_file_range(in, at, out, &to, n, 0);

	if (k >= 0 || (errno != EXDEV && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS))
		return k;
	return lseek(out, to, SEEK_SET) < 0 ? -1 : sendfile(out, in, at, n);
}

/* Extents only: the rest of the new file is a hole. */
static int copy_data(int in, int out, uint64_t size)
{
	off_t at = 0, end;

	while ((uint64_t)at < size && (at = lseek(in, at, SEEK_DATA)) >= 0) {
		end = lseek(in, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		while (at < end) {
			ssize_t n = copy_some(in, out, &at, (size_t)(end - at));

			if (n <= 0)
				return n < 0 ? -errno : -EIO;
		}
	}
	return at < 0 && errno != ENXIO ? -errno : 0;
}

/* A copy that fills the disk would pause the sandboxes that write to it. */
static bool has_space(int fd, const struct stat *st)
{
	struct statvfs v;

	return fstatvfs(fd, &v) < 0 || (uint64_t)v.f_bavail * v.f_frsize >=
					       (uint64_t)st->st_blocks * 512 + TEMPLATE_MIN_FREE;
}

static int copy_open(int in, int out, struct err *err)
{
	struct stat st;

	if (fstat(in, &st) < 0)
		return -errno;
	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	if (!has_space(out, &st))
		return err_set(err, -ENOSPC, "%llu MiB of free disk space are required",
			(unsigned long long)((uint64_t)st.st_blocks / 2048 +
					     (TEMPLATE_MIN_FREE >> 20)));
	if (ftruncate(out, st.st_size) < 0)
		return -errno;
	return copy_data(in, out, (uint64_t)st.st_size);
}

int template_copy(const char *from, const char *to, struct err *err)
{
	AUTO_CLOSE int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct err why = {0};
	int r;

	if (in < 0 || out < 0)
		return err_errno(err, -errno, "cannot copy %s", from);
	r = copy_open(in, out, &why);
	if (r < 0)
		return err_set(err, r, "cannot copy %s: %s", from, err_text(&why, r));
	return 0;
}

int template_link(const char *from, const char *to, struct err *err)
{
	if (link(from, to) == 0)
		return 0;
	/* Another file system, another owner, or too many names. */
	if (errno == EXDEV || errno == EPERM || errno == EMLINK)
		return template_copy(from, to, err);
	return err_errno(err, -errno, "cannot link %s to %s", from, to);
}

int template_remove(const char *dir, struct err *err)
{
	struct dirent *e;
	struct stat st;
	int r = 0;
	AUTO_DIR DIR *d = NULL;

	if (lstat(dir, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot access %s", dir);
	if (!S_ISDIR(st.st_mode))
		return unlink(dir) < 0 ? err_errno(err, -errno, "cannot remove %s", dir) : 0;
	d = opendir(dir);
	if (!d)
		return err_errno(err, -errno, "cannot open %s", dir);
	while ((e = dir_next(d)))
		if (unlinkat(dirfd(d), e->d_name, 0) < 0)
			r = -errno;
	if (r == 0 && rmdir(dir) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, r, "cannot remove %s", dir) : 0;
}

int template_sync_dir(const char *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_errno(err, -errno, "cannot sync %s", dir);
	return 0;
}

int template_point(const char *path, const char *target, struct err *err)
{
	AUTO_FREE char *temp = xasprintf("%s.new-%d", path, (int)getpid());

	(void)unlink(temp);
	if (symlink(target, temp) < 0)
		return err_errno(err, -errno, "cannot create the link %s", path);
	if (rename(temp, path) < 0) {
		int r = -errno;

		(void)unlink(temp);
		return err_errno(err, r, "cannot create the link %s", path);
	}
	return 0;
}

bool template_is_real_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
