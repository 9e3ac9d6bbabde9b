#include "out_place.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/mem.h"
#include "sandbox.h"

void out_place_done(struct out_place *o)
{
	fd_close(&o->dir);
	free(o->path);
	*o = (struct out_place){.dir = -1};
}

int out_place_dest(const char *typed, struct cp_dest *ret, struct problem *p)
{
	const json_t *s, *w;
	AUTO_JSON json_t *all = NULL;
	AUTO_FREE const char **roots = NULL;
	size_t n = 0, i, k;
	int r = sandbox_list(&all, p);

	if (r < 0)
		return r;
	json_array_foreach(all, i, s)
	{
		json_array_foreach(json_object_get(s, "workspaces"), k, w)
		{
			roots = xrealloc(roots, (n + 1) * sizeof(*roots));
			roots[n++] = api_str(w, "host");
		}
	}
	return cp_dest_find(typed, roots, n, ret, &p->err);
}

static int open_beneath(const struct cp_dest *d, const char *folder, struct err *err)
{
	AUTO_CLOSE int root = open(d->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	int fd;

	if (root < 0)
		return err_errno(err, -errno, "opening %s", d->root);
	fd = (int)syscall(SYS_openat2, root, folder, &how, sizeof(how));
	if (fd < 0 && errno == ELOOP)
		return err_set(err, -ELOOP,
			"'%s' in the workspace '%s' leads through a symbolic link, which a guest "
			"may have created",
			folder, d->root);
	return fd < 0 ? err_errno(err, -errno, "opening %s/%s", d->root, folder) : fd;
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
	fd = open_beneath(&d, dirname(folder), &p->err);
	if (fd == -ELOOP)
		return problem_hint(p, fd, "realpath %s", typed);
	if (fd < 0)
		return fd;
	ret->dir = fd;
	ret->path = xasprintf("/proc/self/fd/%d/%s", fd, basename(name));
	return 0;
}
