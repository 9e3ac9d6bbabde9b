#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fd.h"
#include "mem.h"

static int write_temp(const char *temp, struct slice content)
{
	AUTO_CLOSE int fd = mkostemp((char *)temp, O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, content.p, content.n);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

static int sync_folder_of(const char *path)
{
	AUTO_FREE char *copy = xstrdup(path);
	AUTO_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int file_save(const char *path, struct slice content, struct err *err)
{
	AUTO_FREE char *temp = xasprintf("%s.XXXXXX", path);
	int r;

	r = write_temp(temp, content);
	if (r == 0 && rename(temp, path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(temp);
		return err_errno(err, r, "writing %s", path);
	}
	r = sync_folder_of(path);
	return r < 0 ? err_errno(err, r, "syncing the folder of %s", path) : 0;
}

int file_open(const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_errno(err, -errno, "opening %s", path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "reading %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", path);
	return TAKE_FD(fd);
}

int file_load(const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_CLOSE int fd = file_open(path, err);
	AUTO_FREE char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return fd;
	text = xmalloc(max + 1);
	n = fd_read_full(fd, text, max + 1);
	if (n < 0)
		return err_errno(err, (int)n, "reading %s", path);
	if ((size_t)n > max)
		return err_set(err, -EFBIG, "%s is larger than %zu bytes", path, max);
	text[n] = '\0';
	*ret_text = TAKE(text);
	*ret_n = (size_t)n;
	return 0;
}
