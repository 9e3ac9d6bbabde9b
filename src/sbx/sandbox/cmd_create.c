/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "src/sbx/agent/agent.h"
#include "create.h"
#include "sandbox.h"
#include "src/sbx/sandbox/project/project.h"

static const struct opt_def opts[] = {
	CREATE_OPTS,
	{'q', "quiet", NULL, "print only the name of the sandbox", .heading = "other options"},
	{0},
};

static int run_create(struct opts *o)
{
	CLEANUP(creation_done) struct creation c = {0};
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	const char *agent = o->args.v[0];
	bool quiet = opts_has(o, "quiet");
	int r;

	if (!create_is_agent(agent)) {
		AUTO_FREE char *names = agent_need_names();
		const char *near = agent_need_nearest(agent);

		if (agent_need_unavailable(agent))
			return EXIT_FAILED;
		ui_error("unknown agent '%s': available agents are %s", agent, names);
		if (near)
			ui_hint("sbx create %s", near);
		else
			ui_hint("sbx agent ls");
		return EXIT_USAGE;
	}
	if (create_only_lists(o, agent, &r))
		return r;
	r = create_parse(o, agent, o->args.v + 1, o->args.n - 1, false, &c, &p);
	if (r == 0) {
		r = project_apply(o, &c, &p);
		r = r < 0 ? problem_usage(&p, r, "create") : create_make(&c, quiet, &s, &p);
	}
	if (r < 0)
		return ui_problem(&p, r);
	if (quiet)
		printf("%s\n", c.name);
	else
		printf("%s Created sandbox %s\n\nTo connect to this sandbox, run:\n  sbx run "
		       "--name %s\n",
			ui_tick(), c.name, c.name);
	return EXIT_OK;
}

const struct verb verb_create = {
	.name = "create",
	.group = "sandboxes",
	.args = "AGENT [PATH...]",
	.summary = "create and start a sandbox",
	.about =
		"Creates a sandbox, starts it and waits until it is ready. A sandbox is a virtual\n"
		"machine with its own kernel, disks and Docker. AGENT is the program to run in it, such\n"
		"as claude, codex, gemini or shell; sbx agent ls lists all agents. If the agent needs\n"
		"hosts that the policy does not allow, they are listed and allowed only after you confirm.\n\n"
		"Each PATH is a host directory to share, mounted at the same path in the sandbox. :ro\n"
		"makes it read-only; a single file requires :ro. HOST:GUEST mounts it at another path.\n"
		"Without a PATH, nothing is shared. / and your home directory, and directories in it that\n"
		"hold keys (such as ~/.ssh and ~/.config), require --force. The directories of sbx cannot\n"
		"be shared. With --clone, the first PATH is a git repository that is not shared: the\n"
		"sandbox has a clone, and git fetch sandbox-NAME gets its commits.",
	.examples = "  sbx create shell . --name demo\n"
		    "  sbx create shell ~/src/app ~/docs:ro ~/.gitconfig:ro --hide '.env*'\n"
		    "  sbx create claude . --clone --branch fix-17\n"
		    "  sbx create shell ~/cache:/cache --cpus 4 --memory 8g\n",
	.opts = opts,
	.min = 1,
	.max = 65,
	.first = VERB_AGENT,
	.others = VERB_PATH,
	.run = run_create,
};
