/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "src/sbx/agent/agent.h"
#include "src/sbx/clone/clone.h"
#include "src/sbx/stage/stage.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"

static const struct opt_def opts[] = {
	{'f', "force", NULL, "do not prompt, and remove sandboxes with open sessions"},
	{0, "all", NULL, "remove all sandboxes"},
	{0, "discard", NULL, "drop commits and staged changes that are not on the host"},
	{0, "history", NULL, "also remove the agent's history for the workspace"},
	{0},
};

/* The options. */
struct wish {
	bool force, history, discard;
};

/* The agent's history outlives its sandbox, unless it is removed too. */
static int end_history(const char *folder, bool remove)
{
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	int r;

	if (!remove) {
		printf("The agent's history for this workspace is kept: %s\n", folder);
		return EXIT_OK;
	}
	r = sandbox_list(&list, &p);
	if (r == 0)
		r = history_remove(folder, list, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("Removed the agent's history for this workspace\n");
	return EXIT_OK;
}

static int remove_one(const char *ref, const struct wish *w)
{
	AUTO_FREE char *folder = NULL;
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = 0;

	if (sandbox_get(ref, &s, &p) == 0)
		folder = history_folder(s);
	p = (struct problem){0};

	printf("Removing sandbox %s...\n", ref);
	(void)fflush(stdout);
	if (s && !w->discard)
		r = clone_keep(s, &p);
	if (s && !w->discard && r == 0)
		r = stage_may_remove(s, !w->force, &p);
	if (r == 0)
		r = sandbox_remove(ref, w->force, &p);
	if (r == -EBUSY && !p.hint[0])
		(void)problem_hint(&p, r, "sbx rm --force %s", ref);
	if (r < 0)
		return ui_problem(&p, r);
	if (s)
		clone_forget(s);
	printf("Sandbox '%s' removed\n", ref);
	return folder ? end_history(folder, w->history) : EXIT_OK;
}

/* True when it may continue. */
static bool is_wanted(const struct opt_list *names, bool force)
{
	const char *first = names->v[0];
	size_t n = names->n;

	if (force)
		return true;
	if (!ui_can_ask()) {
		ui_error(
			"refusing to remove sandboxes without confirmation: stdin is not a terminal");
		if (n == 1)
			ui_hint("sbx rm --force %s", first);
		else
			ui_hint("sbx ls");
		return false;
	}
	if (n == 1)
		return ui_confirm("Remove sandbox '%s' and its disks?", first);
	/* Some may belong to a running build or `sbx prove`. */
	for (size_t i = 0; i < n; i++)
		ui_note("  %s", names->v[i]);
	return ui_confirm("Remove these %zu sandboxes and their disks?", n);
}

/* Detects a typo before the prompt. Existing sandboxes are removed anyway. */
static int check_there(const struct opts *o, struct opt_list *ret)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < o->args.n; i++) {
		AUTO_JSON json_t *s = NULL;
		struct problem p = {0};
		int r = sandbox_get(o->args.v[i], &s, &p);

		if (r < 0)
			status = ui_problem(&p, r);
		else
			opt_list_add(ret, o->args.v[i]);
	}
	return status;
}

static int remove_all(const struct opt_list *names, const struct wish *w)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < names->n; i++)
		if (remove_one(names->v[i], w) != EXIT_OK)
			status = EXIT_FAILED;
	return status;
}

static int run_all(const struct wish *w)
{
	AUTO_JSON json_t *list = NULL;
	struct opt_list names = {0};
	struct problem p = {0};
	int r = sandbox_list(&list, &p), status;
	const json_t *s;
	size_t i;

	if (r < 0)
		return ui_problem(&p, r);
	json_array_foreach (list, i, s)
		opt_list_add(&names, api_str(s, "name"));
	if (names.n == 0)
		printf("No sandboxes found\n");
	status = names.n == 0 || is_wanted(&names, w->force) ? remove_all(&names, w) : EXIT_FAILED;
	free(names.v);
	return status;
}

static int run_rm(struct opts *o)
{
	struct wish w = {.force = opts_has(o, "force"),
		.history = opts_has(o, "history"),
		.discard = opts_has(o, "discard")};
	struct opt_list names = {0};
	int missing, status = EXIT_FAILED;

	if (opts_has(o, "all") != (o->args.n == 0)) {
		ui_error("sbx rm: missing SANDBOX or --all");
		ui_hint("sbx ls");
		return EXIT_USAGE;
	}
	if (opts_has(o, "all"))
		return run_all(&w);
	missing = check_there(o, &names);
	if (names.n > 0 && is_wanted(&names, w.force))
		status = remove_all(&names, &w);
	free(names.v);
	return status == EXIT_OK ? missing : status;
}

const struct verb verb_rm = {
	.name = "rm",
	.group = "sandboxes",
	.args = "[SANDBOX...]",
	.summary = "remove sandboxes and their disks",
	.about =
		"Stops the sandboxes and removes them and their disks. Workspaces and audit logs\n"
		"are kept. Prompts for confirmation; use --force if stdin is not a terminal. A sandbox\n"
		"with open sessions is removed only with --force.\n\n"
		"The agent's history for the workspace stays on the host for its next sandbox there,\n"
		"unless --history is given.\n\n"
		"Of a clone (sbx create --clone), commits that you have not fetched are kept in refs/sbx/NAME\n"
		"of your repository. A stopped sandbox is started for that. --discard does neither. The\n"
		"remote sandbox-NAME is removed.\n\n"
		"A sandbox with staged changes that were not applied is removed after a prompt, or with\n"
		"--discard. A stopped one is started to look for them, unless --discard is given.",
	.examples = "  sbx rm demo\n  sbx rm --force --all\n",
	.opts = opts,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run_rm,
};
