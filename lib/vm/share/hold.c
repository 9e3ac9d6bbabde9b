/* SPDX-License-Identifier: Apache-2.0 */
#include "hold.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/os/jail/tree.h"

static bool is_mount_point(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int hold_one(int root, const char *path, struct err *err)
{
	AUTO_CLOSE int tree = -1;
	AUTO_CLOSE int place = -1;
	int r = tree_place(root, path, true, 0555, &place, err);

	if (r < 0 || is_mount_point(place))
		return r;
	r = tree_clone(place, TREE_RW, &tree);
	if (r == 0)
		r = tree_attach(tree, place);
	return r < 0 ? err_errno(err, r, "cannot bind %s onto itself", path) : 0;
}

int hold_above(int root, const char *outer, const char *path, struct err *err)
{
	AUTO_FREE char *part = xstrdup(path);
	size_t at = strlen(outer) + 1;
	int r = 0;

	for (char *end = strchr(part + at, '/'); r == 0 && end; end = strchr(end + 1, '/')) {
		*end = '\0';
		r = hold_one(root, part, err);
		*end = '/';
	}
	return r;
}
