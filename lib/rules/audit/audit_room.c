/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space that is allocated ahead, so that events of the host are still recorded with 0 bytes free.
 *
 * Blocks are allocated after the end of the segment, whose size does not change. A record that a
 * guest can cause is refused when it would take from them: the rest is for the records of the
 * keeper, such as the reason why the sandbox has stopped. The kept head is a file that is replaced,
 * for which there may be no space either; a spare file exists, and the two are exchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "audit_internal.h"

/* A head has no texts: it is far shorter than a block. */
#define SPARE_BYTES 4096

static char *spare_path(const struct audit *a)
{
	const char *name = strrchr(a->kept_path, '/') + 1;

	/* No list has a name with a dot in front. */
	return xasprintf("%.*s.%s.spare", (int)(name - a->kept_path), a->kept_path, name);
}

bool audit_is_no_space(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

static void make_spare(struct audit *a)
{
	AUTO_FREE char *path = spare_path(a);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	a->has_spare = fd >= 0 && posix_fallocate(fd, 0, SPARE_BYTES) == 0;
	if (!a->has_spare)
		(void)unlink(path);
}

static int allocate_room(struct audit *a, uint64_t n)
{
	if (fallocate(a->fd, FALLOC_FL_KEEP_SIZE, (off_t)a->size, (off_t)n) < 0)
		return -errno;
	a->allocated = a->size + n;
	return 0;
}

int audit_room_take(struct audit *a, size_t n)
{
	int r;

	if (!a->room)
		return 0;
	if (!a->has_spare)
		make_spare(a);
	if (a->size + n + a->room <= a->allocated)
		return 0;
	r = allocate_room(a, n + 2 * a->room);
	if (audit_is_no_space(r))
		r = allocate_room(a, n + a->room);
	if (r == 0 || audit_is_no_space(r))
		return r;
	a->room = 0; /* a file system that has no such thing */
	return 0;
}

void audit_room_give_back(struct audit *a, int fd, uint64_t size)
{
	if (a->allocated > size)
		(void)!ftruncate(fd, (off_t)size);
	a->allocated = 0;
}

static int write_spare(const char *path, struct slice bytes)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, bytes.p, bytes.n);
	if (r < 0)
		return r;
	return ftruncate(fd, (off_t)bytes.n) < 0 || fsync(fd) < 0 ? -errno : 0;
}

int audit_room_keep_head(struct audit *a)
{
	AUTO_FREE char *path = spare_path(a), *dir = xstrdup(a->kept_path);
	int r = a->has_spare ? write_spare(path, slice_of(a->head, a->n_head)) : -ENOSPC;

	if (r < 0)
		return r;
	if (renameat2(AT_FDCWD, path, AT_FDCWD, a->kept_path, RENAME_EXCHANGE) < 0)
		return -errno;
	*strrchr(dir, '/') = '\0';
	return audit_sync_folder(dir);
}

void audit_room_done(struct audit *a)
{
	AUTO_FREE char *path = spare_path(a);

	if (!a->room)
		return;
	audit_room_give_back(a, a->fd, a->size);
	(void)unlink(path);
}
