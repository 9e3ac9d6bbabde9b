/* SPDX-License-Identifier: Apache-2.0 */
#include "carry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "git.h"
#include "quarantine.h"

#define MAX_INDEX (1u << 30)
#define MAX_FILTERS 32
#define MAX_ENV (16 + 6 * MAX_FILTERS)

/* The variables of each git here. */
struct env {
	char *v[MAX_ENV + 1];
	size_t n;
};

static void env_free(struct env *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i]);
}

static void env_put(struct env *e, char *word)
{
	if (e->n < MAX_ENV)
		e->v[e->n++] = word;
	else
		free(word);
}

static void env_config(struct env *e, size_t *n, char *key, const char *value)
{
	env_put(e, xasprintf("GIT_CONFIG_KEY_%zu=%s", *n, key));
	env_put(e, xasprintf("GIT_CONFIG_VALUE_%zu=%s", *n, value));
	(*n)++;
	free(key);
}

/* No program of a filter runs: files are carried as they are. */
static void env_filters(struct env *e, const struct repo *repo)
{
	static const char *const args[] = {
		"config", "--name-only", "--get-regexp", "^filter\\..*\\.(clean|process)$", NULL};
	AUTO_FREE char *list = git_line(repo->top, NULL, args);
	size_t n = 0, filters = 0;

	for (char *s = list ? strtok(list, "\n") : NULL; s; s = strtok(NULL, "\n")) {
		char *dot = strrchr(s, '.');

		if (!dot || filters++ == MAX_FILTERS)
			break;
		*dot = '\0';
		env_config(e, &n, xasprintf("%s.clean", s), "");
		env_config(e, &n, xasprintf("%s.process", s), "");
		env_config(e, &n, xasprintf("%s.required", s), "false");
	}
	env_put(e, xasprintf("GIT_CONFIG_COUNT=%zu", n));
}

static void env_make(struct env *e, const struct carry *c, const struct repo *repo)
{
	env_put(e, xasprintf("GIT_INDEX_FILE=%s/index", c->dir));
	env_put(e, xasprintf("GIT_OBJECT_DIRECTORY=%s", c->objects));
	env_put(e, xstrdup("GIT_AUTHOR_NAME=sbx"));
	env_put(e, xstrdup("GIT_AUTHOR_EMAIL=sbx@localhost"));
	env_put(e, xstrdup("GIT_COMMITTER_NAME=sbx"));
	env_put(e, xstrdup("GIT_COMMITTER_EMAIL=sbx@localhost"));
	env_filters(e, repo);
}

void carry_done(struct carry *c)
{
	if (c->dir)
		quarantine_remove_dir(c->dir);
	free(c->dir);
	free(c->objects);
	free(c->staged);
	free(c->tree);
	*c = (struct carry){0};
}

static int copy_index(const struct carry *c, const struct repo *repo, struct err *err)
{
	AUTO_FREE char *text = NULL, *path = xasprintf("%s/index", c->dir);
	size_t n;
	int r = file_load(repo->index, MAX_INDEX, &text, &n, err);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : file_save(path, slice_of(text, n), err);
}

static int make_objects(struct carry *c, const struct repo *repo, struct err *err)
{
	AUTO_FREE char *info = xasprintf("%s/objects/info", c->dir),
		       *list = xasprintf("%s/alternates", info),
		       *line = xasprintf("%s\n", repo->objects[0]);

	c->objects = xasprintf("%s/objects", c->dir);
	if (mkdir(c->objects, 0700) < 0 || mkdir(info, 0700) < 0)
		return err_errno(err, -errno, "cannot create %s", info);
	return file_save(list, slice_from_str(line), err);
}

/* One git with the variables; *ret (or NULL) gets its line. */
static int run_carry(const struct repo *repo, struct env *e, const char *const *args,
	const char *const *more, char **ret, struct err *err)
{
	struct git_run g = {
		.dir = repo->top, .args = args, .more = more, .env = (const char *const *)e->v};
	AUTO_FREE char *out = NULL;
	int r = git_must(&g, "cannot carry the uncommitted files", err);

	out = g.out;
	if (r == 0 && ret) {
		out[strcspn(out, "\n")] = '\0';
		*ret = TAKE(out);
	}
	return r;
}

static int commit_tree(
	const struct repo *repo, struct env *e, const char *head, char **ret, struct err *err)
{
	static const char *const write[] = {"write-tree", NULL};
	AUTO_FREE char *tree = NULL;
	const char *args[] = {"commit-tree", "-m", "carried", NULL, NULL, NULL, NULL};
	size_t n = 3;
	int r = run_carry(repo, e, write, NULL, &tree, err);

	if (head) {
		args[n++] = "-p";
		args[n++] = head;
	}
	args[n] = tree;
	return r == 0 ? run_carry(repo, e, args, NULL, ret, err) : r;
}

/* The index with the files of the work tree. A repository that does not show untracked files, such
 * as one of a home directory, does not have them carried either. */
static int add_files(
	const struct repo *repo, struct env *e, const struct opt_list *globs, struct problem *p)
{
	static const char *const all[] = {"add", "-A", "--", ".", NULL};
	static const char *const known[] = {"add", "-u", "--", ".", NULL};
	static const char *const get[] = {"config", "--get", "status.showUntrackedFiles", NULL};
	AUTO_FREE char *shown = git_line(repo->top, NULL, get);
	bool few = shown && (strcmp(shown, "no") == 0 || strcmp(shown, "false") == 0);
	int r = run_carry(repo, e, few ? known : all, NULL, NULL, &p->err);

	for (size_t i = 0; r == 0 && i < globs->n; i++) {
		AUTO_FREE char *spec = xasprintf(":(top,glob)%s", globs->v[i]);
		const char *args[] = {"add", "-A", "-f", "--", spec, NULL};
		struct err ignored = {0};

		r = run_carry(repo, e, args, NULL, NULL, &ignored);
		if (r < 0)
			return err_set(
				&p->err, -ENOENT, "--carry '%s' matches no file", globs->v[i]);
	}
	return r;
}

/* Whether the two commits have the tree of `head`: then there is nothing to carry. */
static bool is_clean(const struct repo *repo, struct env *e, const char *head, const char *commit)
{
	AUTO_FREE char *a = NULL, *b = NULL, *was = xasprintf("%s^{tree}", head),
		       *is = xasprintf("%s^{tree}", commit);
	const char *of_head[] = {"rev-parse", was, NULL}, *of_commit[] = {"rev-parse", is, NULL};
	struct err ignored = {0};

	return run_carry(repo, e, of_head, NULL, &a, &ignored) == 0 &&
	       run_carry(repo, e, of_commit, NULL, &b, &ignored) == 0 && strcmp(a, b) == 0;
}

int carry_make(const struct repo *repo, const char *id, const char *head,
	const struct opt_list *globs, struct carry *c, struct problem *p)
{
	CLEANUP(env_free) struct env e = {.n = 0};
	struct err ignored = {0};
	int r = quarantine_dir(id, &c->dir, &p->err);

	if (r == 0)
		r = make_objects(c, repo, &p->err);
	if (r == 0)
		r = copy_index(c, repo, &p->err);
	if (r < 0)
		return r;
	env_make(&e, c, repo);
	/* An index with conflicts has no tree. */
	if (commit_tree(repo, &e, head, &c->staged, &ignored) < 0)
		c->staged = NULL;
	r = add_files(repo, &e, globs, p);
	if (r == 0)
		r = commit_tree(repo, &e, head, &c->tree, &p->err);
	if (r == 0 && head && c->staged && is_clean(repo, &e, head, c->tree) &&
		is_clean(repo, &e, head, c->staged)) {
		free(TAKE(c->tree));
		free(TAKE(c->staged));
	}
	return r;
}
