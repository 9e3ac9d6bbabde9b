/* SPDX-License-Identifier: Apache-2.0 */
#include "park_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "src/guest/setup/setup.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* By number: the libc that the guest is linked with does not have all of them. */
static int clone_tree(const char *path)
{
	return (int)syscall(SYS_open_tree, AT_FDCWD, path,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
}

static int set_attrs(int tree, uint64_t attrs)
{
	struct mount_attr a = {.attr_set = attrs};

	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &a, sizeof(a));
}

static int move_to(int tree, const char *place)
{
	return (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH);
}

void park_mounts_drop(struct park_list *l)
{
	size_t ns = 0;

	for (size_t i = l->n_mounts; i-- > 0;) {
		const struct park_mount *m = &l->mounts[i];

		if (m->ns != ns && park_list_enter(l, m->ns) < 0)
			continue;
		ns = m->ns;
		/* Detaching the mount below has detached it too. */
		if (umount2(m->place, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL &&
			errno != ENOENT)
			log_warn("cannot unmount %s: %s", m->place, strerror(errno));
	}
	if (ns != 0 && park_list_enter(l, 0) < 0)
		log_error("cannot return from a container's namespace");
}

static int restore_one(const struct park_list *l, const struct park_mount *m)
{
	AUTO_FREE char *from = xasprintf("%s%s", MOUNTS_SHARE, m->root);
	AUTO_CLOSE int tree = clone_tree(from);
	int r = 0;

	if (tree < 0 || (m->attrs && set_attrs(tree, m->attrs) < 0))
		return -errno;
	if (m->ns != 0)
		r = park_list_enter(l, m->ns);
	if (r == 0 && move_to(tree, m->place) < 0)
		r = -errno;
	if (m->ns != 0 && park_list_enter(l, 0) < 0)
		return -EIO;
	return r;
}

static void lose_mount(struct park_list *l, const struct park_mount *m, int r)
{
	struct park_report *rep = &l->lost;
	size_t n = strlen(rep->text);

	rep->n++;
	(void)snprintf(rep->text + n, sizeof(rep->text) - n, "%s%s%s is not mounted again: %s",
		n ? "; " : "", m->place, m->ns ? " of a container" : "", strerror(-r));
}

void park_mounts_restore(struct park_list *l)
{
	for (size_t i = 0; i < l->n_mounts; i++) {
		const struct park_mount *m = &l->mounts[i];
		int r = m->is_base ? 0 : restore_one(l, m);

		if (r < 0)
			lose_mount(l, m, r);
	}
}
