/* SPDX-License-Identifier: Apache-2.0 */
/* sbx review: takes the changes of the sandbox and shows them. */
#include <errno.h>
#include <string.h>

#include "lib/client/tui/tui.h"
#include "show.h"
#include "src/sbx/review/review.h"
#include "src/sbx/stage/commits/commits.h"
#include "stage.h"
#include "src/sbx/stage/past/past.h"
#include "src/sbx/stage/screen/stage_screen.h"

static const struct opt_def opts[] = {
	{0, "list", NULL, "print the list of staged changes without diffs"},
	{0, "guard", NULL, "show changed files that run programs on the host"},
	{0, "done", NULL, "with --guard: print the names and forget the list"},
	{0, "git", NULL, "show commits of the sandbox that the host does not have"},
	{0, "plain", NULL, "print text, also on a terminal"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static bool wants_screen(const struct opts *o, const struct stage_view *v)
{
	return v->n > 0 && !opts_has(o, "plain") && !opts_has(o, "json") && !opts_has(o, "list") &&
	       tui_is_usable();
}

/* Returns 1 if something was applied. */
static int use_screen(struct stage_view *v, struct problem *p)
{
	struct stage_result done;
	int r = stage_screen_run(v, &p->err);

	if (r <= 0)
		return r;
	past_checkpoint(v->sandbox);
	r = stage_view_apply(v, show_skipped, &done, p);
	if (r < 0)
		return r;
	show_applied(v->sandbox, &done);
	return 1;
}

/* A path that can be typed without quotes. */
static bool is_simple(const char *path)
{
	return path[0] != '-' &&
	       path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789._-/+@")] == '\0';
}

/* What a person can do about conflicts, with the first of them. */
static void note_conflicts(const struct stage_view *v)
{
	const struct stage_change *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->items[i].class, "conflict") == 0) {
			n++;
			if (!first && is_simple(v->items[i].shown) && is_simple(v->items[i].guest))
				first = &v->items[i];
		}
	if (n == 0)
		return;
	ui_note("%zu conflict%s: apply the version of the sandbox by its path, or copy the file "
		"and edit your own",
		n, n == 1 ? "" : "s");
	if (!first)
		return;
	ui_hint("sbx apply %s %s", v->sandbox, first->shown);
	ui_hint("sbx cp %s:%s/%s %s.sandbox", v->sandbox, first->guest, first->path, first->shown);
}

static int check_review(const struct opts *o, struct problem *p)
{
	if (!opts_has(o, "git") || (!opts_has(o, "guard") && !opts_has(o, "list")))
		return 0;
	(void)err_set(&p->err, -EINVAL, "--git, --guard and --list are mutually exclusive");
	return problem_usage(p, -EINVAL, "review");
}

static int run_review(struct opts *o)
{
	AUTO_STAGE_VIEW struct stage_view v = {0};
	struct problem p = {0};
	int r;

	r = check_review(o, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "guard"))
		return review_guard(o);
	if (opts_has(o, "git"))
		return commits_review(o);
	r = stage_view_open(&v, o->args.v[0], true, &p);
	if (r == 0 && opts_has(o, "json")) {
		show_json(&v);
		return EXIT_OK;
	}
	if (r == 0)
		r = wants_screen(o, &v) ? use_screen(&v, &p)
					: show_view(&v, !opts_has(o, "list"), &p.err);
	if (r < 0)
		return ui_problem(&p, r);
	if (r == 0)
		note_conflicts(&v);
	if (r == 0 && v.n > 0)
		ui_note("Nothing was applied. To apply class plain: sbx apply --plain %s",
			v.sandbox);
	return EXIT_OK;
}

const struct verb verb_review = {
	.name = "review",
	.group = "staged workspaces",
	.args = "SANDBOX",
	.summary = "show what a sandbox changed in its workspaces",
	.about =
		"Gets the changes of a sandbox that was created with --staged, and prints a list and a\n"
		"diff. Nothing in the workspace is changed. The changes are stored on the host: apply uses\n"
		"exactly what the last review has shown, whatever the sandbox does in the meantime.\n\n"
		"Each change has a class. plain is text. merged is text that you and the sandbox both\n"
		"changed, in different lines. autorun is a file that programs of the host run or\n"
		"believe, such as a Makefile or a Git hook; ci and container are two kinds of it. dependency\n"
		"and script-change are manifests with new entries, lockfile their exact versions. unicode is\n"
		"text that is not what it looks like. exec-bit, symlink, binary and huge are what they say.\n"
		"git (below .git), conflict (also changed on the host), case-clash (a name that differs in\n"
		"case only) and secret (with a credential of the vault) are applied only by their path.\n"
		"symlink-out, hidden, moving and special are never applied.\n\n"
		"On a terminal, a full-screen view opens: select changes and apply them there; ? lists its\n"
		"keys. Nothing is applied without a confirmation.\n\n"
		"With --git, shows the log of the commits in the sandbox that the host does not have. They\n"
		"are checked in a jail first. Nothing is fetched into your repository.\n\n"
		"With --guard, shows the workspace files that run programs on the host (Makefile,\n"
		"package.json, editor and CI configuration ...) and that a sandbox without --staged created\n"
		"or changed: the program that runs each file, and the difference to its earlier content.\n"
		"Also lists the writes that the guard denied. The list is kept until --done or until the\n"
		"sandbox is removed. Files outside the list, such as source code, are not shown.",
	.examples = "  sbx review demo\n  sbx review --list demo\n  sbx review demo --guard\n"
		    "  sbx review demo --git\n"
		    "  sbx review demo --guard --json | jq -r '.changed[].path'\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_review,
};
