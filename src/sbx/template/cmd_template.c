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
		printf("Template '%s' already exists. Rebuild it with: sbx template build "
		       "--force\n",
			name);
		return EXIT_OK;
	}
	r = template_build(name, mirror ? extra : NULL, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Template '%s' is ready. Use it with: sbx create shell . --name demo\n",
		ui_tick(), name);
	return EXIT_OK;
}

static const struct verb subs[] = {
	{
		.name = "build",
		.args = "[--image REF | --file DOCKERFILE] [AGENT|NAME]",
		.summary = "build the base template, or an agent's, or one from an image or a "
			   "Dockerfile",
		.about =
			"Builds the template 'debian', the base disk of sandboxes, from Debian packages, as an\n"
			"ordinary user. This takes some minutes and about 5 GiB of free space.\n\n"
			"With an AGENT, builds the template of that agent. Its npm packages are installed in a\n"
			"scratch sandbox, in the versions that the file of the agent specifies. The scratch sandbox\n"
			"can reach only the npm registry in your npm configuration, receives no token and no\n"
			"credential, and is removed afterwards.",
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
		.args = "[debian|AGENT]",
		.summary = "rebuild older templates with the newest versions",
		.about =
			"Rebuilds the base template 'debian' if another version of sbx built it. Then checks for\n"
			"newer versions of an agent's packages, or of all agents that have a template, lists the\n"
			"changes and rebuilds the template. Existing sandboxes keep their template.",
		.examples = "  sbx template update claude\n",
		.opts = template_update_opts,
		.max = 1,
		.first = VERB_AGENT,
		.run = template_agent_update,
	},
	{
		.name = "save",
		.args = "SANDBOX NAME | TEMPLATE -o FILE",
		.summary = "save a sandbox as a template, or a template to a file",
		.about =
			"Creates a template from the current disks of a sandbox. Every sandbox created from it\n"
			"contains the installed software. A running sandbox keeps running. Only the differences\n"
			"from its own template use disk space. Workspaces are not part of the template, and\n"
			"credentials are never in a sandbox. With -o, writes a template to a file for another\n"
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
		.summary = "load a template from a file",
		.about =
			"Reads a file written by sbx template save -o; - is stdin. The complete file is verified\n"
			"before it is installed. A corrupt file, or one whose contents do not match its\n"
			"description, is rejected.",
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
			"Lists all templates. SIZE is the disk space of a template, SHARED the part of it that\n"
			"other templates and sandboxes use as well.",
		.examples = "  sbx template ls --json\n",
		.opts = template_ls_opts,
		.run = template_ls_run,
	},
	{
		.name = "inspect",
		.args = "NAME",
		.summary = "show the details of a template",
		.about = "Shows the contents and the origin of a template.",
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
		.about =
			"Removes the name of a template. Its files are removed when no sandbox uses them; files\n"
			"that other templates share are kept.",
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
		.summary = "verify the digests of templates",
		.about =
			"Reads all files of the named templates, or of all templates, and compares their digests.\n"
			"A start also verifies files that were modified since the last verification.",
		.examples = "  sbx template verify\n",
		.max = 64,
		.first = VERB_TEMPLATE,
		.others = VERB_TEMPLATE,
		.run = template_verify_run,
	},
	{
		.name = "warm",
		.args = "[NAME]",
		.summary = "create a snapshot of a template",
		.about =
			"Boots the template once and saves the memory of the VM. New sandboxes with the same CPUs\n"
			"and memory start from this snapshot instead of booting. By default, the snapshot is\n"
			"created in the background after the first start (setting warm.images).",
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
	.about =
		"A template is the read-only base disk of sandboxes. All sandboxes of a template share it.",
	.examples = "  sbx template build\n  sbx template save demo my-tools\n",
	.subs = subs,
};
