/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a step while it is applied: its directory, temporary name and old version. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define BUFFER (256u << 10)

int spot_open(const struct apply *a, const struct plan_step *s, size_t i, struct spot *ret)
{
	const char *base;
	int dir = look_parent(a->roots[s->ws], s->path, &base);

	*ret = (struct spot){.dir = dir < 0 ? -1 : dir, .base = base};
	(void)snprintf(ret->temp, sizeof(ret->temp), STAGE_TEMP "%.40s-%zu", a->tag, i);
	(void)snprintf(ret->saved, sizeof(ret->saved), "%zu", i);
	return dir < 0 ? dir : 0;
}

void spot_close(struct spot *s)
{
	if (s->dir >= 0)
		fd_close(&s->dir);
}

static int copy_bytes(int from, int to)
{
	AUTO_FREE uint8_t *buf = xmalloc(BUFFER);
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(from, buf, BUFFER)) != 0)
		r = n < 0 ? -errno : fd_write_all(to, buf, (size_t)n);
	return r;
}

static int copy_file(int from_dir, const char *from, int to_dir, const char *to)
{
	AUTO_CLOSE int in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct stat st;
	struct timespec times[2];
	int r;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return -errno;
	r = copy_bytes(in, out);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (r == 0 &&
		(fchmod(out, st.st_mode & 0777) < 0 || futimens(out, times) < 0 || fsync(out) < 0))
		r = -errno;
	return r;
}

static int copy_link(int from_dir, const char *from, int to_dir, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_dir, from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to_dir, to) < 0 ? -errno : 0;
}

/* Moves a file or a link; between file systems by a copy that is renamed when it is complete. */
static int move_version(int from_dir, const char *from, int to_dir, const char *to)
{
	AUTO_FREE char *part = xasprintf("%s.part", to);
	struct stat st;
	int r;

	if (renameat(from_dir, from, to_dir, to) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)unlinkat(to_dir, part, 0);
	r = S_ISLNK(st.st_mode) ? copy_link(from_dir, from, to_dir, part)
				: copy_file(from_dir, from, to_dir, part);
	if (r == 0 && renameat(to_dir, part, to_dir, to) < 0)
		r = -errno;
	if (r == 0 && unlinkat(from_dir, from, 0) < 0)
		r = -errno;
	return r;
}

static int move_saved(const struct apply *a, const struct spot *s, bool save)
{
	AUTO_CLOSE int dir = open(a->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	return save ? move_version(s->dir, s->temp, dir, s->saved)
		    : move_version(dir, s->saved, s->dir, s->temp);
}

int spot_save(const struct apply *a, const struct spot *s, struct err *err)
{
	int r = move_saved(a, s, true);

	return r < 0 ? err_errno(err, r, "cannot save the old version of '%.200s'", s->base) : 0;
}

int spot_unsave(const struct apply *a, const struct spot *s, struct err *err)
{
	int r = move_saved(a, s, false);

	return r < 0 ? err_errno(err, r, "cannot restore '%.200s'", s->base) : 0;
}

bool spot_is_saved(const struct apply *a, const struct spot *s)
{
	AUTO_FREE char *path = xasprintf("%s/%s", a->dir, s->saved);

	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void spot_drop_temp(const struct spot *s)
{
	AUTO_FREE char *part = xasprintf("%s.part", s->temp);

	(void)unlinkat(s->dir, s->temp, 0);
	(void)unlinkat(s->dir, part, 0);
}

bool spot_matches(const struct look *have, const struct look *want)
{
	if (have->type != want->type)
		return false;
	if (have->type == LOOK_ABSENT)
		return true;
	if (have->type != LOOK_LINK && have->mode != want->mode)
		return false;
	return have->type == LOOK_DIR || memcmp(have->sha, want->sha, SHA256_BYTES) == 0;
}
