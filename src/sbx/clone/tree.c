/* SPDX-License-Identifier: Apache-2.0 */
/* For merges of a staged workspace: the files of an earlier commit, and git merge-file. */
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "clone.h"
#include "git.h"
#include "quarantine.h"
#include "refs.h"

#define MAX_LIST (64u << 20)

struct tree_row {
	const char *path, *oid;
	bool exec, file; /* file: not a link */
};

struct clone_tree {
	struct repo repo;
	struct quarantine q;
	char *prefix; /* of the workspace in the repository */
	char *text;
	struct tree_row *v;
	size_t n;
};

void clone_tree_free(struct clone_tree *t)
{
	if (!t)
		return;
	quarantine_done(&t->q);
	repo_done(&t->repo);
	free(t->prefix);
	free(t->text);
	free(t->v);
	free(t);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_row *)a)->path, ((const struct tree_row *)b)->path);
}

/* "MODE TYPE OID<tab>PATH" */
static void add_row(struct clone_tree *t, char *line)
{
	char *tab = strchr(line, '\t'), *oid = strchr(line, ' ');

	oid = oid ? strchr(oid + 1, ' ') : NULL;
	if (!tab || !oid || oid > tab || strncmp(line, "16", 2) == 0) /* 16: a submodule */
		return;
	*tab = '\0';
	t->v[t->n++] = (struct tree_row){.path = tab + 1,
		.oid = oid + 1,
		.exec = strncmp(line, "100755 ", 7) == 0,
		.file = strncmp(line, "100", 3) == 0};
}

static void split_rows(struct clone_tree *t, size_t n_text)
{
	size_t room = 1;

	for (size_t i = 0; i < n_text; i++)
		room += t->text[i] == '\0';
	t->v = xcalloc(room, sizeof(*t->v));
	for (size_t at = 0; at < n_text; at += strlen(t->text + at) + 1)
		if (t->n < room)
			add_row(t, t->text + at);
	if (t->n > 1)
		qsort(t->v, t->n, sizeof(*t->v), by_path);
}

/* The commit of HEAD at that time, or NULL: the reflog is younger, or there is none. */
static char *find_commit(const struct repo *repo, long long at_ms)
{
	AUTO_FREE char *name = xasprintf("HEAD@{%lld}^{commit}", at_ms / 1000);
	const char *args[] = {"rev-parse", "--verify", "--end-of-options", name, NULL};
	struct git_run g = {.git_dir = repo->git_dir, .args = args};
	struct err ignored = {0};
	int r = git_run(&g, &ignored);
	AUTO_FREE char *out = g.out;

	out[strcspn(out, "\n")] = '\0';
	/* a warning: the log does not go back far enough, and git uses its oldest entry */
	if (r != 0 || g.said[0] || !refs_is_oid(slice_from_str(out), repo_hex(repo)))
		return NULL;
	return TAKE(out);
}

static bool load_list(struct clone_tree *t, const char *host, const char *id, long long at_ms)
{
	static const char *const prefix[] = {"rev-parse", "--show-prefix", NULL};
	const char *argv[] = {"git", "ls-tree", "-r", "-z", "--full-tree", NULL, NULL};
	AUTO_FREE char *oid = NULL;
	struct problem p = {0};
	size_t n = 0;

	if (repo_open(host, NULL, &t->repo, &p) < 0)
		return false;
	t->prefix = git_line(host, NULL, prefix);
	oid = find_commit(&t->repo, at_ms);
	argv[5] = oid;
	if (!t->prefix || !oid || quarantine_make(&t->q, &t->repo, id, NULL, &p.err) < 0 ||
		quarantine_run(&t->q, argv, MAX_LIST, &t->text, &n, &p.err) != 0)
		return false;
	split_rows(t, n);
	return true;
}

struct clone_tree *clone_tree_open(const char *host, const char *id, long long at_ms)
{
	struct clone_tree *t = xcalloc(1, sizeof(*t));

	if (load_list(t, host, id, at_ms))
		return t;
	clone_tree_free(t);
	return NULL;
}

static const struct tree_row *find_row(const struct clone_tree *t, const char *path)
{
	AUTO_FREE char *full = xasprintf("%s%s", t->prefix, path);
	struct tree_row key = {.path = full};

	return t->n ? bsearch(&key, t->v, t->n, sizeof(*t->v), by_path) : NULL;
}

bool clone_tree_has(const struct clone_tree *t, const char *path)
{
	return find_row(t, path) != NULL;
}

bool clone_tree_load(struct clone_tree *t, const char *path, size_t max, char **ret, size_t *ret_n,
	bool *ret_exec)
{
	const struct tree_row *row = find_row(t, path);
	const char *argv[] = {"git", "cat-file", "blob", row ? row->oid : NULL, NULL};
	AUTO_FREE char *text = NULL;
	struct err ignored = {0};

	if (!row || !row->file || quarantine_run(&t->q, argv, max, &text, ret_n, &ignored) != 0)
		return false;
	*ret = TAKE(text);
	*ret_exec = row->exec;
	return true;
}

int clone_merge(const char *id, struct slice ours, struct slice base, struct slice theirs,
	size_t max, char **ret, size_t *ret_n, struct err *err)
{
	/* in the jail the quarantine is /q */
	static const char *const argv[] = {
		"git", "merge-file", "-p", "-q", "/q/ours", "/q/base", "/q/theirs", NULL};
	const struct repo none = {.format = (char *)"sha1"};
	AUTO_QUARANTINE struct quarantine q = {0};
	int r = quarantine_make(&q, &none, id, NULL, err);

	if (r == 0)
		r = quarantine_save(&q, "ours", ours, err);
	if (r == 0)
		r = quarantine_save(&q, "base", base, err);
	if (r == 0)
		r = quarantine_save(&q, "theirs", theirs, err);
	return r < 0 ? r : quarantine_run(&q, argv, max, ret, ret_n, err);
}
