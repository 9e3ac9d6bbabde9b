/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lib/rules/spec/spec.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"
#include "src/sbx/clone/clone.h"

static const struct opt_def opts[] = {{0}};

static int run_rename(struct opts *o)
{
	const char *from = o->args.v[0], *to = o->args.v[1];
	AUTO_JSON json_t *body = json_pack("{s:s}", "name", to);
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = spec_check_name(to, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "rename"));
	r = sandbox_get(from, &s, &p);
	if (r == 0)
		r = sandbox_call("PATCH", from, "", body, API_TIMEOUT_MS, NULL, &p);
	if (r < 0)
		return ui_problem(&p, r);
	clone_rename(s, to);
	printf("Renamed sandbox '%s' to '%s'\n", from, to);
	return EXIT_OK;
}

const struct verb verb_rename = {
	.name = "rename",
	.group = "sandboxes",
	.args = "SANDBOX NAME",
	.summary = "rename a sandbox",
	.about = "Renames a running or stopped sandbox. Its id and its state do not change.",
	.examples = "  sbx rename demo bugfix-17\n",
	.opts = opts,
	.min = 2,
	.max = 2,
	.first = VERB_SANDBOX,
	.run = run_rename,
};
