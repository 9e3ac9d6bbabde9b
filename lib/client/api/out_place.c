/* SPDX-License-Identifier: Apache-2.0 */
#include "out_place.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "sandbox.h"

void out_place_done(struct out_place *o)
{
	fd_close(&o->dir);
	free(o->path);
	*o = (struct out_place){.dir = -1};
}

struct roots {
	json_t *all; /* owns the strings */
	const char **v;
	size_t n;
};

static void roots_done(struct roots *r)
{
	json_decref(r->all);
	free(r->v);
}

/* The workspaces of all sandboxes. */
static int get_roots(bool writable_only, struct roots *ret, struct problem *p)
{
	const json_t *s, *w;
	size_t i, k;
	int r = sandbox_list(&ret->all, p);

	if (r < 0)
		return r;
	json_array_foreach (ret->all, i, s) {
		json_array_foreach (json_object_get(s, "workspaces"), k, w) {
			if (writable_only && json_is_true(json_object_get(w, "ro")))
				continue;
			ret->v = xrealloc(ret->v, (ret->n + 1) * sizeof(*ret->v));
			ret->v[ret->n++] = api_str(w, "host");
		}
	}
	return 0;
}

int out_place_dest(const char *typed, struct cp_dest *ret, struct problem *p)
{
	CLEANUP(roots_done) struct roots roots = {0};
	int r = get_roots(false, &roots, p);

	return r < 0 ? r : cp_dest_find(typed, roots.v, roots.n, ret, &p->err);
}

static int open_beneath(const struct cp_dest *d, const char *path, int flags, struct err *err)
{
	AUTO_CLOSE int root = open(d->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	int fd;

	if (root < 0)
		return err_errno(err, -errno, "cannot open %s", d->root);
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 && errno == ELOOP)
		return err_set(err, -ELOOP,
			"'%s' in workspace '%s' is reached through a symbolic link, which a guest may have created",
			path, d->root);
	return fd < 0 ? err_errno(err, -errno, "cannot open %s/%s", d->root, path) : fd;
}

static int open_regular(const struct cp_dest *d, struct err *err)
{
	AUTO_CLOSE int fd = open_beneath(d, d->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot read %s/%s", d->root, d->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s/%s is not a regular file", d->root, d->path);
	return TAKE_FD(fd);
}

int out_place_source(const char *typed, struct cp_dest *ret, struct problem *p)
{
	CLEANUP(roots_done) struct roots roots = {0};
	int r = get_roots(true, &roots, p);

	return r < 0 ? r : cp_dest_find_source(typed, roots.v, roots.n, ret, &p->err);
}

int out_place_open_source(const char *typed, struct problem *p)
{
	CLEANUP(cp_dest_done) struct cp_dest d = {0};
	int fd, r = out_place_source(typed, &d, p);

	if (r < 0)
		return r;
	if (d.root) {
		fd = open_regular(&d, &p->err);
		return fd == -ELOOP ? problem_hint(p, fd, "realpath %s", typed) : fd;
	}
	fd = open(d.path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? err_errno(&p->err, -errno, "cannot open %s", typed) : fd;
}

int out_place_find(const char *typed, struct out_place *ret, struct problem *p)
{
	CLEANUP(cp_dest_done) struct cp_dest d = {0};
	AUTO_FREE char *folder = NULL, *name = NULL;
	int fd, r = out_place_dest(typed, &d, p);

	*ret = (struct out_place){.dir = -1};
	if (r < 0)
		return r;
	if (!d.root || strcmp(d.path, ".") == 0) {
		ret->path = xstrdup(d.root ? d.root : d.path);
		return 0;
	}
	folder = xstrdup(d.path);
	name = xstrdup(d.path);
	fd = open_beneath(&d, dirname(folder), O_PATH | O_DIRECTORY, &p->err);
	if (fd == -ELOOP)
		return problem_hint(p, fd, "realpath %s", typed);
	if (fd < 0)
		return fd;
	ret->dir = fd;
	ret->path = xasprintf("/proc/self/fd/%d/%s", fd, basename(name));
	return 0;
}
