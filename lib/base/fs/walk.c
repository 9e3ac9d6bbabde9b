/* SPDX-License-Identifier: Apache-2.0 */
#include "walk.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

void walk_done(struct walk *w)
{
	free(w->at);
	free(w->rest);
	*w = (struct walk){0};
}

static void replace_walk(char **s, char *by)
{
	free(*s);
	*s = by;
}

static int follow_walk(struct walk *w, const char *next, const char *after, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(next, target, sizeof(target) - 1);

	if (n < 0)
		return err_errno(err, -errno, "cannot read the link '%.200s'", next);
	if (++w->n_links > WALK_MAX_LINKS)
		return err_errno(err, -ELOOP, "cannot open '%.200s'", next);
	target[n] = '\0';
	if (target[0] == '/')
		replace_walk(&w->at, xstrdup(""));
	replace_walk(&w->rest, xasprintf("%s%s", target, after));
	return strlen(w->rest) >= PATH_MAX ? err_errno(err, -ENAMETOOLONG, "'%.200s'", next) : 0;
}

static void go_up(struct walk *w)
{
	char *slash = strrchr(w->at, '/');

	if (slash)
		*slash = '\0';
}

/* Takes the next component off `rest`. */
static int step_walk(struct walk *w, walk_fn *fn, void *arg, struct err *err)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(from, "/");
	const char *after = from + n;
	AUTO_FREE char *part = xstrndup(from, n);
	AUTO_FREE char *next = xasprintf("%s/%s", w->at, part);
	int r;

	if (strcmp(part, "..") == 0) {
		go_up(w);
	} else if (n > 0 && strcmp(part, ".") != 0) {
		r = fn(arg, w, next, after, err);
		if (r != 0)
			return r < 0 ? r : follow_walk(w, next, after, err);
		replace_walk(&w->at, TAKE(next));
	}
	replace_walk(&w->rest, xstrdup(after));
	return strlen(w->at) >= PATH_MAX ? err_errno(err, -ENAMETOOLONG, "'%.200s'", w->at) : 0;
}

static bool is_cwd(const char *path)
{
	struct stat there, here;

	return path && path[0] == '/' && strlen(path) < PATH_MAX && stat(path, &there) == 0 &&
	       stat(".", &here) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

int walk_absolute(const char *typed, char **ret, struct err *err)
{
	const char *from = getenv("PWD");
	char cwd[PATH_MAX];

	if (!typed[0] || strlen(typed) >= PATH_MAX)
		return err_set(err, -EINVAL, "the path is empty or too long");
	if (typed[0] == '/') {
		*ret = xstrdup(typed);
		return 0;
	}
	if (!is_cwd(from))
		from = getcwd(cwd, sizeof(cwd));
	if (!from)
		return err_errno(err, -errno, "the current directory");
	*ret = xasprintf("%s/%s", from, typed);
	return 0;
}

static int begin_walk(struct walk *w, const char *typed, struct err *err)
{
	char *path = NULL;
	int r = walk_absolute(typed, &path, err);

	if (r < 0)
		return r;
	w->at = xstrdup("");
	w->rest = path;
	return 0;
}

int walk_path(const char *typed, walk_fn *fn, void *arg, struct walk *ret, struct err *err)
{
	int r = begin_walk(ret, typed, err);

	while (r == 0 && ret->rest[0])
		r = step_walk(ret, fn, arg, err);
	return r;
}

bool walk_is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 0 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}
