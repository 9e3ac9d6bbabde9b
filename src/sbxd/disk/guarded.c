/* SPDX-License-Identifier: Apache-2.0 */
#include "guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"

static int open_dir(const char *id)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/guard", id);

	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

size_t guarded_each(const char *id, const char *list, guarded_fn *fn, void *arg)
{
	static struct dirty_row row;
	AUTO_CLOSE int dir = open_dir(id), fd = -1;
	AUTO_FREE char *text = NULL;
	struct slice rest = {0};
	size_t n = 0;

	if (dir >= 0)
		fd = openat(dir, list, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fd_load(fd, DIRTY_MAX_BYTES, &text, &rest.n) < 0)
		return 0;
	rest.p = (const uint8_t *)text;
	while (n < DIRTY_MAX_ROWS && dirty_next(&rest, &row)) {
		n++;
		if (fn)
			fn(arg, &row);
	}
	return n;
}

static int remove_copies(int dir, struct err *err)
{
	AUTO_DIR DIR *copies =
		dir_of(openat(dir, "copy", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	struct dirent *e;

	if (!copies)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot open guard/copy");
	while ((e = dir_next(copies)))
		if (unlinkat(dirfd(copies), e->d_name, 0) < 0 && errno != ENOENT)
			return err_errno(err, -errno, "cannot remove guard/copy/%s", e->d_name);
	return 0;
}

/* The list first: a row without its copy would show nothing of the earlier content. */
int guarded_forget(const char *id, struct err *err)
{
	static const char *const lists[] = {GUARDED_DIRTY, GUARDED_DENIED};
	AUTO_CLOSE int dir = open_dir(id);

	if (dir < 0)
		return errno == ENOENT ? 0
				       : err_errno(err, -errno, "cannot open the guard directory");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (unlinkat(dir, lists[i], 0) < 0 && errno != ENOENT)
			return err_errno(err, -errno, "cannot remove guard/%s", lists[i]);
	return remove_copies(dir, err);
}
