/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/file.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/share/place.h"
#include "lib/rules/spec/spec.h"

#define HASH_BYTES 8

/* ".claude/projects" as the name of one directory. */
static char *flat_name(const char *path)
{
	char *name = xstrdup(path + (path[0] == '.'));

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	return name;
}

static char *folder_of(const char *agent, const char *workspace)
{
	uint8_t hash[SHA256_BYTES];
	char hex[2 * HASH_BYTES + 1];

	sha256(slice_from_str(workspace), hash);
	hex_print(hash, HASH_BYTES, hex);
	return paths_get(PATHS_STATE, "history/%s/%s", agent, hex);
}

static int note_workspace(const char *folder, const char *workspace, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/workspace", folder),
		       *text = xasprintf("%s\n", workspace);

	return access(path, F_OK) == 0 ? 0 : file_save(path, slice_from_str(text), err);
}

int history_add(const struct agent *a, json_t *body, struct problem *p)
{
	const json_t *first = json_array_get(json_object_get(body, "workspaces"), 0);
	AUTO_FREE char *folder = NULL;
	json_t *list;
	int r = 0;

	if (!first || a->history.n == 0)
		return 0;
	folder = folder_of(a->name, api_str(first, "host"));
	list = json_array();
	(void)json_object_set_new(body, "mounts", list);
	for (size_t i = 0; r == 0 && i < a->history.n; i++) {
		AUTO_FREE char *name = flat_name(a->history.v[i].a),
			       *host = xasprintf("%s/%s", folder, name),
			       *guest = xasprintf(SPEC_HOME "/%s", a->history.v[i].a);

		r = paths_make(host, &p->err);
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s}", "host", host, "guest", guest));
	}
	return r == 0 ? note_workspace(folder, api_str(first, "host"), &p->err) : r;
}

/* Only directories that history_add created: below our own directory. */
static bool is_ours(const char *path)
{
	AUTO_FREE char *root = paths_get(PATHS_STATE, "history");
	AUTO_FREE char *real = realpath(root, NULL); /* as sbxd stores it */

	return real && place_is_in(path, real) && strcmp(path, real) != 0 && !strstr(path, "/../");
}

char *history_folder(const json_t *sandbox)
{
	const json_t *mount = json_array_get(json_object_get(sandbox, "mounts"), 0);
	const char *host = mount ? api_str(mount, "host") : "", *slash = strrchr(host, '/');

	return slash && is_ours(host) ? xstrndup(host, (size_t)(slash - host)) : NULL;
}

/* An entry of a directory below `top`. A directory that is not empty moves up to `top`: so names
 * that a guest has nested deeper than PATH_MAX, or than the descriptor limit, are removed too. */
static int remove_or_raise(int top, int dir, const char *name)
{
	static unsigned n;
	char raised[32];
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	do {
		(void)snprintf(raised, sizeof(raised), "raised.%u", n++);
		r = renameat2(dir, name, top, raised, RENAME_NOREPLACE);
	} while (r < 0 && errno == EEXIST);
	return r < 0 ? -errno : 0;
}

static int remove_from_top(int top, const char *name)
{
	AUTO_DIR DIR *d = NULL;
	const struct dirent *e;
	int r = 0;

	if (unlinkat(top, name, 0) == 0)
		return 0;
	if (fchmodat(top, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	d = dir_of(openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (!d)
		return -errno;
	while (r == 0 && (e = dir_next(d)))
		r = remove_or_raise(top, dirfd(d), e->d_name);
	if (r < 0)
		return r;
	return unlinkat(top, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Each pass removes entries of `folder`, and may move deeper ones there. */
static int remove_tree(const char *folder)
{
	AUTO_DIR DIR *d = dir_of(open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	const struct dirent *e;
	bool found = true;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && found) {
		found = false;
		rewinddir(d);
		while (r == 0 && (e = dir_next(d))) {
			found = true;
			r = remove_from_top(dirfd(d), e->d_name);
		}
	}
	if (r < 0)
		return r;
	return rmdir(folder) < 0 ? -errno : 0;
}

int history_remove(const char *folder, const json_t *list, struct problem *p)
{
	const json_t *s;
	size_t i;
	int r;

	json_array_foreach (list, i, s) {
		AUTO_FREE char *other = history_folder(s);

		if (other && strcmp(other, folder) == 0) {
			(void)err_set(&p->err, -EBUSY, "sandbox '%s' uses the same history",
				api_str(s, "name"));
			return problem_hint(p, -EBUSY, "sbx rm --history %s", api_str(s, "name"));
		}
	}
	if (!is_ours(folder))
		return err_set(&p->err, -EINVAL, "'%s' is not a history directory of sbx", folder);
	r = remove_tree(folder);
	return r < 0 ? err_errno(&p->err, r, "cannot remove %s", folder) : 0;
}
