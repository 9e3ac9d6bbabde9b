/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

#include <stdio.h>
#include <string.h>

static const struct opt_def opts[] = {{0}};

static int run_completion(struct opts *o)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = {
		{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (strcmp(o->args.v[0], shells[i].name) == 0) {
			shells[i].print();
			return EXIT_OK;
		}
	ui_error("sbx completion: unknown shell '%s': expected bash, zsh or fish", o->args.v[0]);
	return EXIT_USAGE;
}

const struct verb verb_completion = {
	.name = "completion",
	.group = "other",
	.args = "bash|zsh|fish",
	.summary = "print a completion script",
	.about = "Prints a script for shell completion of commands, options and sandbox names.",
	.examples = "  source <(sbx completion bash)\n"
		    "  sbx completion zsh > \"${fpath[1]}/_sbx\"\n"
		    "  sbx completion fish > ~/.config/fish/completions/sbx.fish\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SHELL,
	.run = run_completion,
};
