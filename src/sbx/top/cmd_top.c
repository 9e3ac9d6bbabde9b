/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx. */
#include <errno.h>
#include <stdio.h>

#include "lib/client/api/sandbox.h"
#include "lib/client/tui/tui.h"
#include "top.h"
#include "top_screen.h"

static const struct opt_def opts[] = {{0}};

bool top_is_wanted(void)
{
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};

	return tui_is_usable() && sandbox_list(&list, &p) == 0 && json_array_size(list) > 0;
}

int top_run(void)
{
	struct problem p = {0};
	int r;

	if (!tui_is_usable()) {
		r = err_set(&p.err, -ENOTTY, "sbx top requires a terminal");
		return ui_problem(&p, problem_hint(&p, r, "sbx stats --no-stream"));
	}
	r = top_screen_run(&p.err);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

static int run_verb_top(struct opts *o)
{
	(void)o;
	return top_run();
}

const struct verb verb_top = {
	.name = "top",
	.group = "sandboxes",
	.args = "",
	.summary = "show all sandboxes full-screen, with keys for the common commands",
	.about =
		"Shows all sandboxes full-screen: state, agent, branch, CPU, memory, disk, network,\n"
		"requests that wait for approval (ASK), and changed files that run programs on the host\n"
		"(FILES). Keys attach, start, stop, suspend, remove and review the selected sandbox, and\n"
		"publish a port. The key ? lists all keys. sbx without arguments on a terminal does the\n"
		"same if there is a sandbox.",
	.examples = "  sbx top\n",
	.opts = opts,
	.run = run_verb_top,
};
