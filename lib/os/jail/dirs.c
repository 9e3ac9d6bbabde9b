/* SPDX-License-Identifier: Apache-2.0 */
#include "dirs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/base/fs/dir.h"
#include "lib/base/mem.h"

void jail_dirs_done(struct jail_dirs *d)
{
	for (size_t i = 0; i < d->n; i++)
		free((char *)(uintptr_t)d->list[i].path);
	d->n = 0;
}

void jail_dirs_add(struct jail_dirs *d, char *path, bool rw)
{
	if (path && d->n < JAIL_MAX_DIRS)
		d->list[d->n++] = (struct jail_root){path, rw};
	else
		free(path);
}

void jail_dirs_add_of(struct jail_dirs *d, const char *file)
{
	char *real = realpath(file, NULL), *slash = real ? strrchr(real, '/') : NULL;

	if (slash && slash != real)
		*slash = '\0';
	jail_dirs_add(d, real, false);
}

/* `real` has no link in it, and so has a path that it begins with. */
static bool is_covered(const struct jail_dirs *d, const char *real, bool rw)
{
	for (size_t i = 0; real && i < d->n; i++) {
		size_t n = strlen(d->list[i].path);

		if ((d->list[i].rw || !rw) && strncmp(real, d->list[i].path, n) == 0 &&
			(real[n] == '/' || !real[n]))
			return true;
	}
	return false;
}

void jail_dirs_add_links(struct jail_dirs *d, const char *path, bool rw)
{
	char *real = realpath(path, NULL);
	AUTO_DIR DIR *dir = real ? opendir(real) : NULL;
	struct dirent *e;

	while ((e = dir_next(dir))) {
		AUTO_FREE char *file = xasprintf("%s/%s", real, e->d_name);
		AUTO_FREE char *target = NULL;
		struct stat st;

		if (lstat(file, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		target = realpath(file, NULL);
		if (!is_covered(d, target, rw))
			jail_dirs_add(d, TAKE(target), rw);
	}
	jail_dirs_add(d, real, rw);
}
