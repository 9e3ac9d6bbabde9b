/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "fd.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define LOCK_STEP_MS 20
#define FIRST_READ 65536 /* a larger file gets more */

static int sync_folder_of(const char *path)
{
	AUTO_FREE char *copy = xstrdup(path);
	AUTO_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

/* Only a device is written in place: root made it, and it has no content to lose. */
static bool is_device(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

int file_new_open(struct file_new *f, const char *path, struct err *err)
{
	*f = (struct file_new){.fd = -1, .path = xstrdup(path)};
	if (is_device(path)) {
		f->fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	} else {
		f->temp = xasprintf("%s.XXXXXX", path);
		f->fd = mkostemp(f->temp, O_CLOEXEC);
		if (f->fd < 0)
			free(TAKE(f->temp));
	}
	return f->fd < 0 ? err_errno(err, -errno, "cannot write %s", path) : 0;
}

/* The file is 0600 from its creation: a sealed program, which cannot call umask or fchmod, can
 * write such files. */
static int widen_file(int fd, mode_t mode)
{
	mode_t mask;

	if (mode == 0600)
		return 0;
	mask = umask(0);
	(void)umask(mask);
	return fchmod(fd, mode & ~mask);
}

int file_new_keep(struct file_new *f, mode_t mode, struct err *err)
{
	if (!f->temp)
		return 0;
	if (widen_file(f->fd, mode) < 0 || fsync(f->fd) < 0 || rename(f->temp, f->path) < 0)
		return err_errno(err, -errno, "cannot write %s", f->path);
	free(TAKE(f->temp));
	return 0;
}

void file_new_done(struct file_new *f)
{
	if (!f->path)
		return;
	if (f->temp)
		(void)unlink(f->temp);
	fd_close(&f->fd);
	free(f->temp);
	free(f->path);
	*f = (struct file_new){.fd = -1};
}

int file_save(const char *path, struct slice content, struct err *err)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	int r = file_new_open(&f, path, err);

	if (r < 0)
		return r;
	r = fd_write_all(f.fd, content.p, content.n);
	if (r < 0)
		return err_errno(err, r, "cannot write %s", path);
	r = file_new_keep(&f, 0600, err);
	if (r < 0)
		return r;
	r = sync_folder_of(path);
	return r < 0 ? err_errno(err, r, "cannot sync the directory of %s", path) : 0;
}

static int open_regular(const char *path, int flags, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_errno(err, -errno, "cannot open %s", path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot read %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", path);
	return TAKE_FD(fd);
}

int file_open(const char *path, struct err *err)
{
	return open_regular(path, 0, err);
}

int file_load_no_link(const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_CLOSE int fd = open_regular(path, O_NOFOLLOW, err);

	return fd < 0 ? fd : file_read(fd, path, max, ret_text, ret_n, err);
}

int file_load(const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_CLOSE int fd = file_open(path, err);

	return fd < 0 ? fd : file_read(fd, path, max, ret_text, ret_n, err);
}

int file_read(int fd, const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0, room = MIN(max + 1, (size_t)FIRST_READ);

	for (;; room = MIN(max + 1, room * 2)) {
		ssize_t r;

		text = xrealloc(text, room);
		r = fd_read_full(fd, text + n, room - n);
		if (r < 0)
			return err_errno(err, (int)r, "cannot read %s", path);
		n += (size_t)r;
		if (n > max)
			return err_set(err, -EFBIG, "%s is larger than %zu bytes", path, max);
		if (n < room)
			break;
	}
	text[n] = '\0';
	*ret_text = TAKE(text);
	*ret_n = n;
	return 0;
}

int file_lock(const char *path, unsigned wait_ms, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	uint64_t until = clock_mono_ms() + wait_ms;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_errno(err, -errno, "cannot lock %s", path);
		if (clock_mono_ms() >= until)
			return -EBUSY;
		(void)usleep(LOCK_STEP_MS * 1000);
	}
	return TAKE_FD(fd);
}

bool file_is_locked(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	/* Shared: two processes that check at the same time do not see each other. */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool file_is_local(const char *path)
{
	static const long known[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
	struct statfs st;

	if (statfs(path, &st) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (st.f_type == known[i])
			return true;
	return false;
}

bool file_has_quota(const char *dir)
{
	const struct {
		unsigned cmd, id;
	} owners[] = {{(unsigned)Q_GETQUOTA << SUBCMDSHIFT | USRQUOTA, getuid()},
		{(unsigned)Q_GETQUOTA << SUBCMDSHIFT | GRPQUOTA, getgid()}};
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
		struct dqblk q = {0};

		if (syscall(SYS_quotactl_fd, fd, owners[i].cmd, owners[i].id, &q) == 0 &&
			(q.dqb_bhardlimit || q.dqb_bsoftlimit))
			return true;
	}
	return false;
}
