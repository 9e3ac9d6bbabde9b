/* SPDX-License-Identifier: Apache-2.0 */
#include "ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static char *piece_path(const char *dir, unsigned i)
{
	return xasprintf("%s/ballast.%u", dir, i);
}

static int make_piece(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	r = posix_fallocate(fd, 0, BALLAST_PIECE);
	if (r != 0)
		(void)unlink(path);
	return -r;
}

static void make_all(const char *dir)
{
	AUTO_FREE char *old = xasprintf("%s/ballast", dir); /* one file, of earlier versions */
	int r = 0;

	(void)unlink(old);
	for (unsigned i = 0; r == 0 && i < BALLAST_PIECES; i++) {
		AUTO_FREE char *path = piece_path(dir, i);

		r = make_piece(path);
	}
	if (r < 0)
		log_warn("cannot reserve disk space: %s", strerror(-r));
}

static uint64_t free_bytes(const char *dir)
{
	struct statfs st;

	return statfs(dir, &st) < 0 ? UINT64_MAX : (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
}

/* Removes only what this request needs: the next one may find a full disk again. */
static void give_up(const char *dir)
{
	for (unsigned i = 0; i < BALLAST_PIECES && free_bytes(dir) < BALLAST_LOW; i++) {
		AUTO_FREE char *path = piece_path(dir, i);

		if (unlink(path) == 0)
			log_warn("the disk is full: released a part of the reserved space");
	}
}

void ballast_look(const char *dir, bool is_needed)
{
	uint64_t free = free_bytes(dir);

	if (is_needed && free < BALLAST_LOW)
		give_up(dir);
	else if (free != UINT64_MAX && free >= BALLAST_ENOUGH)
		make_all(dir);
}
