/* SPDX-License-Identifier: Apache-2.0 */
/* sbx discard: the sandbox shows the workspace of the host again. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "pull.h"
#include "stage.h"

static const struct opt_def opts[] = {
	{'y', "yes", NULL, "do not prompt"},
	{0},
};

/* The upper directory cannot be emptied while it is mounted. */
static int discard_changes(struct area *a, struct problem *p)
{
	AUTO_FREE char *bundle = area_path(a, "bundle"), *base = area_path(a, "base");
	bool was_running = sandbox_is(a->sandbox, "running");
	int r = area_require_finished(a, p);

	if (r == 0)
		r = sandbox_start(a->name, NULL, NULL, p);
	if (r == 0)
		r = area_record(a, "discard", NULL, 0, NULL, p);
	if (r == 0)
		r = pull_discard(a, p);
	if (r == 0)
		r = sandbox_call("POST", a->name, "/stop", NULL, SANDBOX_STOP_MS, NULL, p);
	if (r < 0)
		return r;
	area_remove(bundle);
	area_remove(base);
	return was_running ? sandbox_start(a->name, NULL, NULL, p) : 0;
}

static int confirm_discard(const struct opts *o, const char *name, struct problem *p)
{
	if (opts_has(o, "yes"))
		return 0;
	if (!ui_can_ask()) {
		(void)err_set(&p->err, -EINVAL,
			"stdin is not a terminal: use --yes to discard without a prompt");
		return problem_usage(p, -EINVAL, "discard");
	}
	return ui_confirm("Discard all staged changes of sandbox '%s' and restart it?", name)
		       ? 0
		       : err_set(&p->err, -ECANCELED, "nothing was discarded");
}

static size_t count_unapplied(const struct stage_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += v->items[i].rule != STAGE_NEVER;
	return n;
}

int stage_may_remove(const json_t *sandbox, bool ask, struct problem *p)
{
	AUTO_STAGE_VIEW struct stage_view v = {0};
	const char *name = api_str(sandbox, "name");
	size_t n;
	int r;

	if (!json_is_true(json_object_get(sandbox, "staged")))
		return 0;
	r = stage_view_open(&v, name, true, p);
	if (r < 0)
		(void)err_wrap(&p->err, r, "cannot read the staged changes of sandbox '%s'", name);
	n = count_unapplied(&v);
	if (r == 0 && n > 0 &&
		!(ask && ui_can_ask() &&
			ui_confirm("%zu staged change%s of sandbox '%s' not applied. Discard?", n,
				n == 1 ? "" : "s", name)))
		r = err_set(&p->err, -ENOTEMPTY,
			"sandbox '%s' has %zu staged change%s that %s not applied", name, n,
			n == 1 ? "" : "s", n == 1 ? "was" : "were");
	return r < 0 ? problem_hint(p, r, "sbx rm --discard %s%s", ask ? "" : "--force ", name) : 0;
}

int stage_begin_rewind(const json_t *sandbox, int *ret_lock, struct problem *p)
{
	AUTO_AREA struct area a = {.lock = -1};
	AUTO_FREE char *bundle = NULL;
	int r;

	*ret_lock = -1;
	if (!json_is_true(json_object_get(sandbox, "staged")))
		return 0;
	r = area_open(&a, api_str(sandbox, "id"), p);
	if (r == 0)
		r = area_require_finished(&a, p);
	if (r < 0)
		return r;
	bundle = area_path(&a, "bundle");
	area_remove(bundle);
	*ret_lock = TAKE_FD(a.lock);
	return 0;
}

static int count_changes(const char *name, size_t *ret_n, size_t *ret_runs)
{
	AUTO_AREA struct area a = {.lock = -1};
	AUTO_BUNDLE struct bundle b;
	struct problem p = {0};
	int r;

	bundle_init(&b);
	r = area_open(&a, name, &p);
	if (r == 0 && !sandbox_is(a.sandbox, "running"))
		r = -EAGAIN; /* not started for a number */
	if (r == 0)
		r = pull_look(&a, &b, &p);
	return r == 0 ? area_count(&a, &b, ret_n, ret_runs, &p.err) : r;
}

void stage_note(const json_t *sandbox)
{
	const char *name = api_str(sandbox, "name");
	size_t n, runs;

	if (count_changes(name, &n, &runs) < 0)
		ui_note("Changes stay in the sandbox: sbx review %s", name);
	else if (n > 0)
		ui_note("%zu change%s in the sandbox, %zu of them in files that run programs on "
			"the host: sbx review %s",
			n, n == 1 ? " stays" : "s stay", runs, name);
	else if (ui_is_terminal())
		ui_note("Nothing is changed in the staged workspace");
}

static int run_discard(struct opts *o)
{
	AUTO_AREA struct area a = {.lock = -1};
	struct problem p = {0};
	int r = area_open(&a, o->args.v[0], &p);

	if (r == 0)
		r = confirm_discard(o, a.name, &p);
	if (r == 0)
		r = discard_changes(&a, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("Discarded the staged changes of sandbox '%s'\n", a.name);
	return EXIT_OK;
}

const struct verb verb_discard = {
	.name = "discard",
	.group = "staged workspaces",
	.args = "SANDBOX",
	.summary = "discard the changes of a sandbox with --staged",
	.about =
		"Discards all staged changes: the sandbox then shows the workspace as it is on the host.\n"
		"The sandbox is restarted, which ends its programs. Changes that were applied stay\n"
		"applied. The disk of the sandbox outside of the workspace is not changed.",
	.examples = "  sbx discard demo\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_discard,
};
