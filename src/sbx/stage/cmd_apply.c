/* SPDX-License-Identifier: Apache-2.0 */
/* sbx apply and sbx undo: selects steps of the plan and writes them into the workspace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/vm/share/place.h"
#include "pull.h"
#include "show.h"
#include "src/sbx/stage/commits/commits.h"
#include "src/sbx/stage/past/past.h"
#include "stage.h"
#include "view_internal.h"

static const struct opt_def opts[] = {
	{0, "plain", NULL, "apply the changes of class plain and merged"},
	{0, "all", NULL, "apply all classes except those that need their path"},
	{0, "git", NULL, "fetch the reviewed commits into refs/sbx/SANDBOX"},
	{'y', "yes", NULL, "do not prompt"},
	{0, "continue", NULL, "finish an apply that was interrupted"},
	{0, "undo", NULL, "revert an apply that was interrupted"},
	{0},
};

/* ---- selection ---- */

/* A PATH argument as a path of a workspace; NULL: it is outside of workspace `ws`. */
static char *path_in(const struct area *a, size_t ws, const char *arg)
{
	const char *host = a->host[ws], *path = arg;
	char *text;
	size_t n;

	if (arg[0] == '/' && !place_is_in(arg, host))
		return NULL;
	if (arg[0] == '/')
		path = arg + strlen(host);
	while (path[0] == '/' || str_starts(path, "./"))
		path += path[0] == '/' ? 1 : 2;
	text = xstrdup(path[0] ? path : ".");
	n = strlen(text);
	while (n > 1 && text[n - 1] == '/')
		text[--n] = '\0';
	return text;
}

static int want_paths(
	const struct area *a, struct plan *p, const struct opt_list *args, struct problem *problem)
{
	for (size_t i = 1; i < args->n; i++) {
		size_t n = 0;

		for (size_t ws = 0; ws < a->n; ws++) {
			AUTO_FREE char *path = path_in(a, ws, args->v[i]);

			n += path ? plan_want_path(p, ws, path) : 0;
		}
		if (n > 0)
			continue;
		(void)err_set(&problem->err, -ENOENT, "no staged change at '%s'", args->v[i]);
		return problem_hint(problem, -ENOENT, "sbx review --list %s", a->name);
	}
	return 0;
}

/* True: each change of another class than plain is prompted for. */
static int select_steps(
	struct stage_view *v, const struct opts *o, bool *ret_each, struct problem *p)
{
	bool all = opts_has(o, "all"), plain = opts_has(o, "plain");
	struct plan *plan = &v->parts->plan;
	int r = want_paths(&v->parts->area, plan, &o->args, p);

	if (o->args.n > 1 || r < 0)
		return r;
	for (int c = PLAN_PLAIN; c < (all ? PLAN_GIT : PLAN_MERGED + 1); c++)
		plan_want_class(plan, (enum plan_class)c);
	*ret_each = !all && !plain && !opts_has(o, "yes");
	return 0;
}

static size_t count_wanted(const struct stage_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += *v->items[i].wanted;
	return n;
}

/* Nothing stays selected without the user's agreement. */
static void confirm_wanted(const struct stage_view *v, const struct opts *o)
{
	const struct area *a = &v->parts->area;
	size_t n = count_wanted(v);

	if (n == 0 || opts_has(o, "yes") ||
		ui_confirm("Apply %zu change%s to %s%s?", n, n == 1 ? "" : "s", a->host[0],
			a->n > 1 ? " and other workspaces" : ""))
		return;
	for (size_t i = 0; i < v->n; i++)
		*v->items[i].wanted = false;
}

static void ask_each(const struct stage_view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct stage_change *item = &v->items[i];

		if (item->rule == STAGE_BY_CLASS && item->step->class > PLAN_MERGED)
			*item->wanted = ui_confirm(
				"%s %s: %s. Apply it?", item->class, item->change, item->shown);
	}
}

/* ---- apply ---- */

static int apply_new(const struct opts *o, struct problem *p)
{
	AUTO_STAGE_VIEW struct stage_view v = {0};
	struct stage_result done;
	bool each = false;
	int r = stage_view_open(&v, o->args.v[0], false, p);

	if (r == 0)
		r = select_steps(&v, o, &each, p);
	if (r < 0)
		return r;
	confirm_wanted(&v, o);
	if (each)
		ask_each(&v);
	if (count_wanted(&v))
		past_checkpoint(v.sandbox);
	r = stage_view_apply(&v, show_skipped, &done, p);
	if (r < 0)
		return r;
	if (done.n_done + done.n_skipped > 0)
		show_applied(v.sandbox, &done);
	else
		printf("Nothing was applied. %zu change%s not selected\n", v.n,
			v.n == 1 ? "" : "s");
	return 0;
}

static int no_apply(const struct area *a, const char *what, struct problem *p)
{
	return err_set(&p->err, -ENOENT, "nothing to %s for sandbox '%s'", what, a->name);
}

static int finish_apply(struct stage_parts *s, struct problem *p)
{
	CLEANUP(view_free_apply) struct apply ap = {0};
	bool open;
	unsigned last = area_last_apply(&s->area, &open);
	int r;

	if (!open)
		return no_apply(&s->area, "continue", p);
	r = area_bundle(&s->area, &s->bundle, p);
	if (r < 0)
		return r;
	ap = view_make_apply(s, last);
	r = apply_continue(&ap, &p->err);
	pull_refresh(&s->area);
	if (r < 0)
		return problem_hint(p, r, "sbx apply --undo %s", s->area.name);
	show_applied(s->area.name,
		&(struct stage_result){.n_done = ap.n_done, .n_skipped = ap.n_skipped});
	return area_save_known(&s->area, &p->err);
}

/* ---- undo ---- */

static int end_undo(const struct area *a, const struct apply *ap, const char *dir, struct err *err)
{
	AUTO_FREE char *kept = xasprintf("%s.kept", dir), *gone = xasprintf("%s" APPLY_GONE, dir);

	ui_done("Reverted %zu change%s of sandbox '%s'", ap->n_done, ap->n_done == 1 ? "" : "s",
		a->name);
	past_remove(a, gone);
	if (ap->n_skipped == 0) {
		past_remove(a, dir);
		return 0;
	}
	if (rename(dir, kept) < 0)
		return err_errno(err, -errno, "cannot rename %s", dir);
	ui_note("%zu kept as they are. Their old versions: %s", ap->n_skipped, kept);
	return 0;
}

static int undo_last(struct stage_parts *s, bool only_open, struct problem *p)
{
	CLEANUP(view_free_apply) struct apply ap = {0};
	bool open;
	unsigned last = area_last_apply(&s->area, &open);
	int r;

	if (last == 0 || (only_open && !open))
		return no_apply(&s->area, "undo", p);
	r = area_record(&s->area, "undo", NULL, 0, NULL, p);
	if (r < 0)
		return r;
	ap = view_make_apply(s, last);
	r = apply_undo(&ap, &p->err);
	pull_refresh(&s->area);
	if (r == 0)
		r = area_save_known(&s->area, &p->err);
	return r < 0 ? r : end_undo(&s->area, &ap, ap.dir, &p->err);
}

static void free_parts(struct stage_parts *s)
{
	bundle_done(&s->bundle);
	area_done(&s->area);
}

/* Continues or reverts an apply. */
static int end_last(const char *ref, bool go_on, bool only_open, struct problem *p)
{
	CLEANUP(free_parts) struct stage_parts s = {.tell = show_skipped};
	int r;

	bundle_init(&s.bundle);
	r = area_open(&s.area, ref, p);
	if (r < 0)
		return r;
	return go_on ? finish_apply(&s, p) : undo_last(&s, only_open, p);
}

/* ---- commands ---- */

static int check_apply(const struct opts *o, struct problem *p)
{
	unsigned n = opts_has(o, "plain") + opts_has(o, "all") + opts_has(o, "continue") +
		     opts_has(o, "undo") + opts_has(o, "git") + (o->args.n > 1);

	if (n > 1) {
		(void)err_set(&p->err, -EINVAL,
			"--plain, --all, --git, --continue, --undo and PATH are mutually exclusive");
		return problem_usage(p, -EINVAL, "apply");
	}
	if (opts_has(o, "continue") || opts_has(o, "undo") || opts_has(o, "yes") || ui_can_ask())
		return 0;
	(void)err_set(
		&p->err, -EINVAL, "stdin is not a terminal: use --yes to apply without a prompt");
	return problem_usage(p, -EINVAL, "apply");
}

static int run_apply(struct opts *o)
{
	struct problem p = {0};
	bool go_on = opts_has(o, "continue");
	int r = check_apply(o, &p);

	if (r == 0 && opts_has(o, "git"))
		return commits_apply(o);
	if (r == 0 && (go_on || opts_has(o, "undo")))
		r = end_last(o->args.v[0], go_on, true, &p);
	else if (r == 0)
		r = apply_new(o, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_apply = {
	.name = "apply",
	.group = "staged workspaces",
	.args = "SANDBOX [PATH...]",
	.summary = "apply reviewed changes to the workspace",
	.about =
		"Applies the changes of the last review to the workspace on the host. Without an option,\n"
		"the changes of class plain and merged are applied after one confirmation, and each other\n"
		"change is prompted for. PATH selects a file, or everything below a directory; it is absolute\n"
		"or relative to the workspace. Files that changed on the host since then are skipped.\n\n"
		"Each file is replaced in one step, and its old version is kept for sbx undo. An apply that\n"
		"was killed is finished with --continue or reverted with --undo.\n\n"
		"With --git, fetches the commits of the last sbx review --git into refs/sbx/SANDBOX/BRANCH of\n"
		"your repository. Your branches, index and files are not changed.",
	.examples = "  sbx apply demo\n  sbx apply --plain --yes demo\n"
		    "  sbx apply demo src/main.c Makefile\n  sbx apply demo --git\n",
	.opts = opts,
	.min = 1,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_PATH,
	.run = run_apply,
};

static const struct opt_def undo_opts[] = {{0}};

static int run_undo(struct opts *o)
{
	struct problem p = {0};
	int r = end_last(o->args.v[0], false, false, &p);

	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_undo = {
	.name = "undo",
	.group = "staged workspaces",
	.args = "SANDBOX",
	.summary = "revert the last apply",
	.about =
		"Reverts the last apply: the old versions return to the workspace, new files are removed.\n"
		"Files that changed since the apply are kept, and the directory with their old versions is\n"
		"printed. The changes stay in the sandbox. Repeat the command to revert an earlier apply.",
	.examples = "  sbx undo demo\n",
	.opts = undo_opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_undo,
};
