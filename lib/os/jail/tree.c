/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"

int tree_clone(int fd, unsigned flags, int *ret_tree)
{
	AUTO_CLOSE int tree = -1;
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE};

	if (!(flags & TREE_RW))
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (!(flags & TREE_DEV))
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if (flags & TREE_NOEXEC)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	tree = open_tree(
		fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return -errno;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	*ret_tree = TAKE_FD(tree);
	return 0;
}

int tree_tmpfs(const char *size, const char *mode, int *ret_tree)
{
	AUTO_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int tree;

	if (fs < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(
		fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (tree < 0)
		return -errno;
	*ret_tree = tree;
	return 0;
}

/* One name below dir, never through a symlink, crossing into what is mounted there. */
static int open_name(int dir, const char *name, bool want_dir)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | (want_dir ? O_DIRECTORY : 0),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int make_name(int dir, const char *name, bool want_dir, unsigned mode)
{
	int fd;

	if (want_dir)
		return mkdirat(dir, name, mode) < 0 ? -errno : 0;
	fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode & 0444);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

static int open_or_make(int dir, dev_t root_dev, const char *name, bool want_dir, unsigned mode)
{
	struct stat st;
	int r = open_name(dir, name, want_dir);

	if (r != -ENOENT)
		return r;
	/* A bound directory belongs to the host: nothing is created there. */
	if (fstat(dir, &st) < 0)
		return -errno;
	if (st.st_dev != root_dev)
		return -ENOENT;
	r = make_name(dir, name, want_dir, mode);
	return r < 0 ? r : open_name(dir, name, want_dir);
}

int tree_place(int root, const char *path, bool dir, unsigned mode, int *ret_place, struct err *err)
{
	AUTO_CLOSE int at = -1;
	struct stat st;
	const char *p = path;
	char name[NAME_MAX + 1];

	if (fstat(root, &st) < 0)
		return err_errno(err, -errno, "cannot access the new root");
	at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	if (at < 0)
		return err_errno(err, -errno, "cannot open the new root");
	for (p += strspn(p, "/"); *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");
		bool last = p[n + strspn(p + n, "/")] == '\0';
		int fd;

		if (n > NAME_MAX)
			return err_set(err, -ENAMETOOLONG, "a name in %s is too long", path);
		memcpy(name, p, n);
		name[n] = '\0';
		p += n;
		fd = open_or_make(at, st.st_dev, name, dir || !last, mode);
		if (fd < 0)
			return err_errno(err, fd, "cannot create the mount point %s", path);
		fd_close(&at);
		at = fd;
	}
	*ret_place = TAKE_FD(at);
	return 0;
}

int tree_attach(int tree, int place)
{
	if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int tree_set_readonly(int tree)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return 0;
}
