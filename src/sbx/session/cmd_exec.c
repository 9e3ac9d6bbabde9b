/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "session.h"

static const struct opt_def opts[] = {
	{'i', "interactive", NULL, "forward stdin to the command"},
	{'t', "tty", NULL, "allocate a terminal"},
	{'u', "user", "USER[:GROUP]", "run as this user (default: agent)"},
	{'w', "workdir", "DIR", "working directory (default: the first workspace)"},
	{'e', "env", "NAME[=VALUE]", "set an environment variable", .many = true},
	{0, "env-file", "FILE", "read environment variables from FILE", .many = true},
	{'d', "detach", NULL, "exit after the start; the output is discarded"},
	{0},
};

static int run_exec(struct opts *o)
{
	AUTO_ENV struct env env = {0};
	size_t first = o->args.n > 1 && strcmp(o->args.v[1], "--") == 0 ? 2 : 1;
	struct problem p = {0};
	struct attach a = {
		.ref = o->args.v[0],
		.argv = o->args.v + first,
		.user = opts_value(o, "user"),
		.cwd = opts_value(o, "workdir"),
		.env = &env,
		.in = opts_has(o, "interactive"),
		.tty = opts_has(o, "tty"),
		.detach = opts_has(o, "detach"),
	};

	if (o->args.n <= first) {
		ui_error("sbx exec: missing COMMAND");
		ui_hint("sbx exec -it %s bash", a.ref);
		return EXIT_USAGE;
	}
	if (a.detach && (a.in || a.tty)) {
		ui_error("sbx exec: -d cannot be combined with -i or -t");
		return EXIT_USAGE;
	}
	if (env_from_opts(&env, opts_list(o, "env-file"), opts_list(o, "env"), &p) < 0) {
		ui_error("sbx exec: %s", p.err.text);
		if (p.hint[0])
			ui_hint("%s", p.hint);
		return EXIT_USAGE;
	}
	return attach_run(&a);
}

const struct verb verb_exec = {
	.name = "exec",
	.group = "sandboxes",
	.args = "SANDBOX COMMAND [ARG...]",
	.summary = "run a command in a sandbox",
	.about =
		"Runs a command in a sandbox. Starts the sandbox first if it is stopped. Options must come\n"
		"before SANDBOX; all words after it are the command.\n\n"
		"The exit status is that of the command, 128 + N if signal N killed it, 126 or 127 if the\n"
		"command cannot be started, 125 if sbx fails or loses the connection, and 2 on a usage\n"
		"error. Without -t, interrupts are forwarded to the command; the third one stops sbx.",
	.examples = "  sbx exec -it demo bash\n"
		    "  sbx exec -u root demo apt-get update\n"
		    "  tar c src | sbx exec -i demo tar x -C /tmp\n",
	.opts = opts,
	.min = 1,
	.max = 16000,
	.stop_after = 1,
	.first = VERB_SANDBOX,
	.run = run_exec,
};
