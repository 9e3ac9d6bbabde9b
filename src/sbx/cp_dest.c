#include "cp_dest.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/share/place.h"

struct walk {
	const char *const *roots;
	size_t n_roots;
	char *at;   /* resolved so far, without a slash at the end; "" is the root directory */
	char *rest; /* what is left of the path */
	unsigned n_links;
};

static void walk_done(struct walk *w)
{
	free(w->at);
	free(w->rest);
}

static void replace(char **s, char *by)
{
	free(*s);
	*s = by;
}

/* The outermost workspace that `at` is in. */
static const char *root_of(const struct walk *w)
{
	const char *found = NULL;

	for (size_t i = 0; i < w->n_roots; i++)
		if (place_is_in(w->at, w->roots[i]) &&
			(!found || strlen(w->roots[i]) < strlen(found)))
			found = w->roots[i];
	return found;
}

/* Whether `next` is a link to follow; the last component only when it leads to a directory. */
static bool is_followed(const struct walk *w, const char *next, const char *after)
{
	struct stat st;

	if (root_of(w) || lstat(next, &st) < 0 || !S_ISLNK(st.st_mode))
		return false;
	return after[0] || (stat(next, &st) == 0 && S_ISDIR(st.st_mode));
}

static int follow(struct walk *w, const char *next, const char *after, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(next, target, sizeof(target) - 1);

	if (n < 0)
		return err_errno(err, -errno, "reading the link '%.200s'", next);
	if (++w->n_links > CP_DEST_MAX_LINKS)
		return err_errno(err, -ELOOP, "opening '%.200s'", next);
	target[n] = '\0';
	if (target[0] == '/')
		replace(&w->at, xstrdup(""));
	replace(&w->rest, xasprintf("%s%s", target, after));
	return strlen(w->rest) >= PATH_MAX ? err_errno(err, -ENAMETOOLONG, "'%.200s'", next) : 0;
}

static void go_up(struct walk *w)
{
	char *slash = strrchr(w->at, '/');

	if (slash)
		*slash = '\0';
}

/* Takes the next component off `rest`. */
static int step(struct walk *w, struct err *err)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(from, "/");
	const char *after = from + n;
	AUTO_FREE char *part = xstrndup(from, n);
	AUTO_FREE char *next = xasprintf("%s/%s", w->at, part);

	if (strcmp(part, "..") == 0) {
		go_up(w);
	} else if (n > 0 && strcmp(part, ".") != 0) {
		if (is_followed(w, next, after))
			return follow(w, next, after, err);
		replace(&w->at, TAKE(next));
	}
	replace(&w->rest, xstrdup(after));
	return strlen(w->at) >= PATH_MAX ? err_errno(err, -ENAMETOOLONG, "'%.200s'", w->at) : 0;
}

/* A slash or "/." at the end means that a directory is expected: it stays. */
static const char *end_of(const char *typed)
{
	return str_ends(typed, "/.") ? "/." : str_ends(typed, "/") ? "/" : "";
}

static void give(const struct walk *w, const char *typed, struct cp_dest *ret)
{
	const char *root = root_of(w);
	const char *path = root && strcmp(root, "/") != 0 ? w->at + strlen(root) : w->at;

	if (!root) {
		*ret = (struct cp_dest){.path = xasprintf("%s%s", path, end_of(typed))};
		if (!ret->path[0])
			replace(&ret->path, xstrdup("/"));
		return;
	}
	path += path[0] == '/';
	*ret = (struct cp_dest){.root = xstrdup(root),
		.path = path[0] ? xasprintf("%s%s", path, end_of(typed)) : xstrdup(".")};
}

static int begin(struct walk *w, const char *typed, struct err *err)
{
	char cwd[PATH_MAX];

	if (!typed[0] || strlen(typed) >= PATH_MAX)
		return err_set(err, -EINVAL, "the path to copy to is empty or too long");
	if (typed[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return err_errno(err, -errno, "the current directory");
	w->at = xstrdup(typed[0] == '/' || strcmp(cwd, "/") == 0 ? "" : cwd);
	w->rest = xstrdup(typed);
	return 0;
}

int cp_dest_find(const char *typed, const char *const *roots, size_t n_roots, struct cp_dest *ret,
	struct err *err)
{
	CLEANUP(walk_done) struct walk w = {.roots = roots, .n_roots = n_roots};
	int r = begin(&w, typed, err);

	while (r == 0 && w.rest[0])
		r = step(&w, err);
	if (r == 0)
		give(&w, typed, ret);
	return r;
}

void cp_dest_done(struct cp_dest *d)
{
	free(d->root);
	free(d->path);
	*d = (struct cp_dest){0};
}
