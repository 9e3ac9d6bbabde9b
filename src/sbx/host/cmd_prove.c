/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/client/api/daemon.h"
#include "lib/client/cli/prove_opts.h"
#include "host.h"

static int report_failure(const char *program)
{
	if (errno == ENOENT)
		ui_error("%s is missing: the installation is incomplete", program);
	else
		ui_error("cannot start %s: %s", program, strerror(errno));
	ui_hint("sbx diagnose");
	return EXIT_OURS;
}

/* Becomes sbx-prove: same process, environment and terminal. */
static int run_prove(struct opts *o)
{
	AUTO_FREE char *program = daemon_helper_path("sbx-prove"), *own = daemon_own_path();
	struct opt_list words = {0};
	int status;

	if (!own)
		return report_failure(program);
	opt_list_add(&words, "sbx-prove");
	opt_list_add(&words, own);
	if (ui_is_debug())
		opt_list_add(&words, "-D");
	for (char **word = o->argv; *word; word++)
		opt_list_add(&words, *word);
	(void)execv(program, (char *const *)words.v);
	status = report_failure(program);
	free(words.v);
	return status;
}

const struct verb verb_prove = {
	.name = "prove",
	.group = "management",
	.args = "[SANDBOX]",
	.summary = "test the isolation of a sandbox",
	.about =
		"Runs probes against a running sandbox, as root in the guest and on the host at the\n"
		"same time. Prints for each probe what it tried and what guest and host observed.\n"
		"Default: the only running sandbox.\n\n"
		"Destructive probes run in a scratch sandbox with the same settings, which is removed\n"
		"at the end; --quick skips them. Store your own probes in ~/.config/sbx/probes.\n\n"
		"Exit status: 0 if no probe fails, 1 if one fails, 2 on a usage error, 125 if the\n"
		"probes could not run.",
	.examples =
		"  sbx prove\n  sbx prove demo --quick\n  sbx prove demo --group files,network\n"
		"  sbx prove demo --html proof.html\n",
	.opts = prove_opts,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_prove,
};
