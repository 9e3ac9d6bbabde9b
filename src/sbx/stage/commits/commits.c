/* SPDX-License-Identifier: Apache-2.0 */
#include "commits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commits_list.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/clone/clone.h"

/* ---- workspaces ---- */

/* A repository in a directory above the workspace is not in the sandbox. */
static bool is_repository(const struct area *a, size_t ws)
{
	AUTO_FREE char *path = xasprintf("%s/.git", a->host[ws]);

	return access(path, F_OK) == 0;
}

static struct clone_place place_of(const struct area *a, size_t ws)
{
	return (struct clone_place){
		.sandbox = a->name, .id = a->id, .host = a->host[ws], .guest = a->guest[ws]};
}

static int open_area(struct area *a, const char *ref, struct problem *p)
{
	size_t n = 0;
	int r = area_open(a, ref, p);

	for (size_t i = 0; r == 0 && i < a->n; i++)
		n += is_repository(a, i);
	if (r == 0 && n == 0)
		r = err_set(&p->err, -EINVAL, "no workspace of sandbox '%s' is a git repository",
			a->name);
	return r;
}

/* ---- review ---- */

struct showing {
	const struct area *a;
	size_t ws;
	struct commits_list found;
	json_t *list; /* NULL: text */
	size_t n;
};

static void showing_done(struct showing *s)
{
	commits_list_done(&s->found);
	json_decref(s->list);
}

static void show_branch(void *arg, const char *branch, const char *oid, const char *log)
{
	struct showing *s = arg;
	json_t *text;

	commits_list_add(&s->found, s->ws, oid, branch);
	s->n++;
	if (!s->list) {
		printf("%sbranch %s: %s (%s)\n\n%s", s->n > 1 ? "\n" : "", branch, oid,
			s->a->host[s->ws], log);
		return;
	}
	text = json_string(log);
	(void)json_array_append_new(
		s->list, json_pack("{s:s, s:s, s:s, s:o}", "workspace", s->a->host[s->ws], "branch",
				 branch, "commit", oid, "log", text ? text : json_null()));
}

static int review_all(struct showing *s, struct problem *p)
{
	int r = sandbox_start(s->a->name, NULL, NULL, p);

	for (s->ws = 0; r == 0 && s->ws < s->a->n; s->ws++) {
		struct clone_place place = place_of(s->a, s->ws);

		if (is_repository(s->a, s->ws))
			r = clone_show(&place, show_branch, s, p);
	}
	if (r == 0)
		r = area_record(s->a, "review", NULL, s->n, NULL, p);
	return r < 0 ? r : commits_list_save(s->a, &s->found, &p->err);
}

static void end_review(const struct showing *s)
{
	AUTO_JSON json_t *o = NULL;

	if (s->list) {
		o = json_pack("{s:s, s:O}", "sandbox", s->a->name, "branches", s->list);
		api_print(o);
	} else if (s->n == 0) {
		printf("No commits: the host has all branches of sandbox '%s'\n", s->a->name);
	} else {
		(void)fflush(stdout);
		ui_note("Nothing was fetched. To fetch %s into refs/sbx/%s: sbx apply %s --git",
			s->n == 1 ? "the branch" : "the branches", s->a->name, s->a->name);
	}
}

int commits_review(const struct opts *o)
{
	AUTO_AREA struct area a = {.lock = -1};
	CLEANUP(showing_done)
	struct showing s = {.a = &a, .list = opts_has(o, "json") ? json_array() : NULL};
	struct problem p = {0};
	int r = open_area(&a, o->args.v[0], &p);

	if (r == 0)
		r = review_all(&s, &p);
	if (r < 0)
		return ui_problem(&p, r);
	end_review(&s);
	return EXIT_OK;
}

/* ---- apply ---- */

static int fetch_workspace(const struct area *a, size_t ws, const struct commits_rows *rows,
	size_t *n, struct problem *p)
{
	struct clone_place place = place_of(a, ws);
	size_t n_new = 0;
	int r = clone_fetch(&place, rows->oids, rows->branches, rows->n, &n_new, p);

	*n += n_new;
	return r < 0 ? problem_hint(p, r, "sbx review --git %s", a->name) : 0;
}

static int fetch_all(
	const struct area *a, const struct commits_list *list, size_t *n, struct problem *p)
{
	int r = area_record(a, "apply", NULL, commits_list_count(list), "git commits", p);

	if (r == 0)
		r = sandbox_start(a->name, NULL, NULL, p);
	for (size_t i = 0; r == 0 && i < a->n; i++)
		if (list->v[i].n > 0)
			r = fetch_workspace(a, i, &list->v[i], n, p);
	return r;
}

int commits_apply(const struct opts *o)
{
	AUTO_AREA struct area a = {.lock = -1};
	AUTO_COMMITS_LIST struct commits_list list = {0};
	struct problem p = {0};
	size_t n = 0;
	int r = open_area(&a, o->args.v[0], &p);

	if (r == 0)
		r = commits_list_load(&a, &list, &p);
	if (r < 0)
		return ui_problem(&p, r);
	n = commits_list_count(&list);
	if (n > 0 && !opts_has(o, "yes") &&
		!ui_confirm("Fetch %zu branch%s into refs/sbx/%s?", n, n == 1 ? "" : "es", a.name))
		n = 0;
	if (n == 0) {
		printf("Nothing was fetched\n");
		return EXIT_OK;
	}
	n = 0;
	r = fetch_all(&a, &list, &n, &p);
	if (r < 0)
		return ui_problem(&p, r);
	ui_done("Fetched %zu branch%s of sandbox '%s' into refs/sbx/%s", n, n == 1 ? "" : "es",
		a.name, a.name);
	return EXIT_OK;
}
