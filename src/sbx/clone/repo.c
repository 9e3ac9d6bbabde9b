/* SPDX-License-Identifier: Apache-2.0 */
#include "repo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "git.h"

void repo_done(struct repo *r)
{
	free(r->top);
	free(r->git_dir);
	free(r->index);
	free(r->shallow);
	free(r->format);
	for (size_t i = 0; i < r->n_objects; i++)
		free(r->objects[i]);
	*r = (struct repo){0};
}

size_t repo_hex(const struct repo *r)
{
	return strcmp(r->format, "sha256") == 0 ? 64 : 40;
}

/* Splits at newlines; a path with a newline makes too many lines. */
static size_t split_lines(char *text, char **v, size_t max)
{
	size_t n = 0;

	for (char *s = strtok(text, "\n"); s; s = strtok(NULL, "\n")) {
		if (n < max)
			v[n] = s;
		n++;
	}
	return n;
}

static int read_paths(const char *dir, const char *git_dir, struct repo *r, struct problem *p)
{
	static const char *const args[] = {"rev-parse", "--path-format=absolute", "--git-dir",
		"--git-path", "objects", "--git-path", "index", "--git-path", "shallow",
		"--show-object-format", NULL};
	struct git_run g = {.dir = dir, .git_dir = git_dir, .args = args};
	AUTO_FREE char *out = NULL;
	char *v[5];
	int e = git_run(&g, &p->err);

	out = g.out;
	if (e < 0)
		return e;
	if (e > 0) {
		(void)err_set(
			&p->err, -EINVAL, "'%s' is not in a git repository", dir ? dir : git_dir);
		return problem_hint(p, -EINVAL, "git -C '%.200s' status", dir ? dir : ".");
	}
	if (split_lines(out, v, ARRAY_LEN(v)) != ARRAY_LEN(v))
		return err_set(&p->err, -EINVAL, "the path of the repository has a newline");
	r->git_dir = xstrdup(v[0]);
	r->objects[r->n_objects++] = xstrdup(v[1]);
	r->index = xstrdup(v[2]);
	r->shallow = xstrdup(v[3]);
	r->format = xstrdup(v[4]);
	return 0;
}

/* "alternate: PATH" of count-objects, which has followed them all. */
static int read_alternates(struct repo *r, struct problem *p)
{
	static const char *const args[] = {"count-objects", "-v", NULL};
	static const char key[] = "alternate: ";
	struct git_run g = {.git_dir = r->git_dir, .args = args};
	AUTO_FREE char *out = NULL;
	int e = git_must(&g, "cannot read the repository", &p->err);

	out = g.out;
	for (char *s = e == 0 ? strtok(out, "\n") : NULL; s; s = strtok(NULL, "\n")) {
		if (!str_starts(s, key))
			continue;
		s += strlen(key);
		if (s[0] != '/' || r->n_objects == REPO_MAX_OBJECTS)
			return err_set(&p->err, -EINVAL,
				"the repository has too many alternates, or one with an unusual path");
		r->objects[r->n_objects++] = xstrdup(s);
	}
	return e;
}

int repo_open(const char *dir, const char *git_dir, struct repo *ret, struct problem *p)
{
	static const char *const top[] = {"rev-parse", "--show-toplevel", NULL};
	int r = read_paths(dir, git_dir, ret, p);

	if (r == 0 && dir)
		ret->top = git_line(dir, NULL, top);
	if (r == 0)
		r = read_alternates(ret, p);
	if (r < 0)
		repo_done(ret);
	return r;
}
