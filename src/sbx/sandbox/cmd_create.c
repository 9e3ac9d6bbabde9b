/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "src/sbx/agent/agent.h"
#include "create.h"
#include "sandbox.h"

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
	if (r == 0)
		r = create_make(&c, quiet, &s, &p);
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
		"Makes a sandbox, a virtual machine of its own, starts it and waits until it is "
		"ready.\n"
		"AGENT is what will run in it: claude, codex, gemini, shell ...; sbx agent ls "
		"lists "
		"them.\n"
		"What it needs of the network is shown first, and allowed only when you say so.\n\n"
		"Each PATH is shared with it, at the same place: a folder, or with :ro a folder "
		"or a\n"
		"single file that it can only read. HOST:GUEST puts it at another place inside. "
		"Without\n"
		"a PATH nothing is shared. The whole disk, the home folder and directories with "
		"keys "
		"in it\n"
		"(such as ~/.ssh and ~/.config) are refused unless forced; sbx's own are always "
		"refused.",
	.examples = "  sbx create shell . --name demo\n"
		    "  sbx create shell ~/src/app ~/docs:ro ~/.gitconfig:ro --hide '.env*'\n"
		    "  sbx create shell ~/cache:/cache --cpus 4 --memory 8g\n",
	.opts = opts,
	.min = 1,
	.max = 65,
	.first = VERB_AGENT,
	.others = VERB_PATH,
	.run = run_create,
};
