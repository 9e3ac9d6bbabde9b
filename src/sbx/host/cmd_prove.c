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
		ui_error("starting %s: %s", program, strerror(errno));
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
	.about = "Tries probes on a running sandbox, from inside as its root and from outside at "
		 "once, and\n"
		 "says for each what was tried, what the guest saw, what the host sees and what "
		 "that\n"
		 "means. Without SANDBOX the only one that runs is meant.\n\n"
		 "What would disturb is tried on a scratch twin, a sandbox with the same settings "
		 "that is\n"
		 "removed afterwards; --quick does without. Own probes go to "
		 "~/.config/sbx/probes.\n\n"
		 "The exit status is 0 when no probe is red, 1 when one is, 2 for a wrong command "
		 "line,\n"
		 "125 when they could not be tried.",
	.examples =
		"  sbx prove\n  sbx prove demo --quick\n  sbx prove demo --group files,network\n"
		"  sbx prove demo --html proof.html\n",
	.opts = prove_opts,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_prove,
};
