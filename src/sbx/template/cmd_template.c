/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/sbx/disk/disk.h"
#include "template_source.h"
#include "template_verbs.h"
#include "template.h"

static const struct opt_def build_opts[] = {
	{0, "mirror", "URL", "mirror for Debian packages (default: the host's mirror)"},
	{0, "force", NULL, "rebuild an existing template; sandboxes keep the old one"},
	TEMPLATE_SOURCE_OPTS,
	{0},
};
static int run_build(struct opts *o)
{
	const char *mirror = opts_value(o, "mirror"), *name = o->args.n ? o->args.v[0] : "debian";
	const char *extra[] = {"--mirror", mirror, NULL};
	struct problem p = {0};
	int r;

	if (template_source_wanted(o))
		return template_source_build(o);
	if (strcmp(name, "debian") != 0)
		return template_agent_build(name, opts_has(o, "force"));
	if (template_is_there(name) && !opts_has(o, "force")) {
		printf("The template '%s' is there already. To build it anew: sbx template build "
		       "--force\n",
			name);
		return EXIT_OK;
	}
	r = template_build(name, mirror ? extra : NULL, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Template '%s' is ready. To use it: sbx create shell . --name demo\n", ui_tick(),
		name);
	return EXIT_OK;
}

static const struct verb subs[] = {
	{
		.name = "build",
		.args = "[--image REF | --file DOCKERFILE] [AGENT|NAME]",
		.summary = "build the base template, or an agent's, or one from an image or a "
			   "Dockerfile",
		.about = "Builds the template 'debian', the disk that sandboxes start from, from "
			 "Debian's\n"
			 "packages, as an ordinary user. It takes some minutes and about 5 GiB of "
			 "free space.\n\n"
			 "With an AGENT: its template. Its npm packages are installed, with the "
			 "versions "
			 "that its file\n"
			 "says, in a sandbox that reaches npm's registry (as your npm is "
			 "configured; no "
			 "token goes\n"
			 "along) and nothing else, has no credential, and goes when it is done.",
		.examples = "  sbx template build\n  sbx template build claude\n"
			    "  sbx template build --image docker://docker.io/library/node:22 node\n"
			    "  sbx template build --file Dockerfile mine\n",
		.opts = build_opts,
		.max = 1,
		.first = VERB_AGENT,
		.run = run_build,
	},
	{
		.name = "update",
		.args = "[AGENT]",
		.summary = "build agents' templates anew with the newest versions",
		.about = "Looks for newer versions of an agent's packages, or of all agents that "
			 "have a "
			 "template,\n"
			 "shows what changes, and builds the template anew. Sandboxes that are "
			 "there keep "
			 "what they\n"
			 "have.",
		.examples = "  sbx template update claude\n",
		.opts = template_update_opts,
		.max = 1,
		.first = VERB_AGENT,
		.run = template_agent_update,
	},
	{
		.name = "save",
		.args = "SANDBOX NAME | TEMPLATE -o FILE",
		.summary = "make a template of a sandbox, or a file of a template",
		.about = "Makes a template of what a sandbox has on its disks now: what was "
			 "installed in "
			 "it is in\n"
			 "every sandbox made from that template. A sandbox that runs goes on. Only "
			 "what "
			 "differs from\n"
			 "its own template takes room. Workspaces are not part of it, and "
			 "credentials "
			 "never were in\n"
			 "the sandbox. With -o the template is written to a file for another "
			 "machine.",
		.examples = "  sbx template save demo my-tools\n"
			    "  sbx template save my-tools -o my-tools.sbx\n",
		.opts = template_save_opts,
		.min = 1,
		.max = 2,
		.first = VERB_SANDBOX,
		.run = template_save_run,
	},
	{
		.name = "load",
		.args = "FILE [NAME]",
		.summary = "take a template from a file",
		.about = "Reads what `sbx template save -o` wrote, - for the standard input. "
			 "Everything "
			 "is checked\n"
			 "before anything is taken: a file that is damaged or lies is refused.",
		.examples = "  sbx template load my-tools.sbx\n",
		.min = 1,
		.max = 2,
		.first = VERB_PATH,
		.run = template_load_run,
	},
	{
		.name = "ls",
		.args = "",
		.summary = "list templates",
		.about =
			"Lists the templates there are. SIZE is what a template takes on the disk, "
			"SHARED how much\n"
			"of it other templates and sandboxes have too.",
		.examples = "  sbx template ls --json\n",
		.opts = template_ls_opts,
		.run = template_ls_run,
	},
	{
		.name = "inspect",
		.args = "NAME",
		.summary = "show everything about a template",
		.about = "Shows what a template is made of and made from.",
		.examples = "  sbx template inspect debian\n",
		.opts = template_inspect_opts,
		.min = 1,
		.max = 1,
		.first = VERB_TEMPLATE,
		.run = template_inspect_run,
	},
	{
		.name = "rm",
		.args = "NAME...",
		.summary = "remove templates",
		.about = "Takes a template's name away. Its files go when no sandbox stands on "
			 "them any "
			 "more; what\n"
			 "other templates share stays.",
		.examples = "  sbx template rm my-tools\n",
		.opts = template_rm_opts,
		.min = 1,
		.max = 64,
		.first = VERB_TEMPLATE,
		.others = VERB_TEMPLATE,
		.run = template_rm_run,
	},
	{
		.name = "verify",
		.args = "[NAME...]",
		.summary = "read templates whole and compare them with their hashes",
		.about = "Reads every byte of the named templates, or of all. A start does that "
			 "too for "
			 "files that\n"
			 "were touched since they were last read.",
		.examples = "  sbx template verify\n",
		.max = 64,
		.first = VERB_TEMPLATE,
		.others = VERB_TEMPLATE,
		.run = template_verify_run,
	},
	{
		.name = "warm",
		.args = "[NAME]",
		.summary = "make a template's memory image now",
		.about = "Boots the template once and keeps the machine's memory: new sandboxes of "
			 "it with the\n"
			 "same CPUs and memory go on from there instead of booting. Without this "
			 "command the\n"
			 "image is made in the background after the first start (setting "
			 "warm.images).",
		.examples =
			"  sbx template warm\n  sbx template warm debian --cpus 4 --memory 8g\n",
		.opts = template_warm_opts,
		.max = 1,
		.run = template_warm_run,
	},
	{0},
};

const struct verb verb_template = {
	.name = "template",
	.group = "management",
	.args = "COMMAND",
	.summary = "build, save and list templates",
	.about = "A template is the disk that new sandboxes start from. All sandboxes share it, "
		 "read-only.",
	.examples = "  sbx template build\n  sbx template save demo my-tools\n",
	.subs = subs,
};
