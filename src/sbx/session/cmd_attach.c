/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "attach.h"
#include "session.h"

static const struct opt_def opts[] = {
	{0, "session", "NAME", "session name (default: agent)"},
	{0, "detach-keys", "KEYS", "keys that detach from the session (default: ctrl-\\)"},
	{0},
};

static int run_attach(struct opts *o)
{
	const char *session = opts_value(o, "session");
	struct attach a = {
		.ref = o->args.v[0],
		.session = session ? session : ATTACH_AGENT,
		.detach_keys = opts_value(o, "detach-keys"),
		.only = true,
		.in = true,
		.tty = true,
	};

	return attach_run(&a);
}

const struct verb verb_attach = {
	.name = "attach",
	.group = "sandboxes",
	.args = "SANDBOX",
	.summary = "attach to a running session",
	.about =
		"Attaches this terminal to a session of a running sandbox and prints its retained output.\n"
		"Any other attached terminal is detached. sbx attach does not start anything. A session\n"
		"that has exited shows its last screen and returns its exit status once. The detach keys,\n"
		"or closing the terminal, leave the session running. The exit status is that of the\n"
		"session, or 125 if sbx fails.",
	.examples = "  sbx attach demo\n"
		    "  sbx attach demo --detach-keys ctrl-p,ctrl-q\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_attach,
};
