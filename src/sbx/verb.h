/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb - what the command line knows about each command: one row in one table.
 *
 * How      verb_table lists the verbs; help, completion and the parser all read the same rows, so
 *          that none of them can go stale. A verb with `subs` is a group (daemon, settings,
 *          template).
 * Trust    Our own constants.
 * See      main.c, completion.c, tests/cli
 */
#pragma once

#include "lib/client/cli/opt.h"
#include "lib/client/cli/ui.h"

/* What a positional is, for completion. */
enum verb_word {
	VERB_NOTHING,
	VERB_SANDBOX,
	VERB_AGENT,
	VERB_RUN, /* an agent or a sandbox */
	VERB_PATH,
	VERB_COPY,
	VERB_KEY,
	VERB_SHELL,
	VERB_PRESET,
	VERB_KIND,
	VERB_SERVICE,
	VERB_SECRET,
	VERB_TEMPLATE
};

struct verb {
	const char *name;
	const char *group; /* heading in the list of commands */
	const char *args;  /* as in the synopsis */
	const char *summary;
	const char *about;    /* paragraphs of `sbx help VERB` */
	const char *examples; /* lines */
	const struct opt_def *opts;
	unsigned min, max; /* positionals; max 0 with min 0: none */
	unsigned stop_after;
	bool rest; /* takes `-- ARGS` */
	enum verb_word first, others;
	const struct verb *subs; /* ends with a row without a name */
	int (*run)(struct opts *o);
};

extern const struct verb *const verb_table[];

extern const struct verb verb_create, verb_run, verb_exec, verb_ls, verb_inspect, verb_start,
	verb_restart, verb_stop, verb_rm, verb_prune, verb_cp, verb_rename, verb_update,
	verb_diagnose, verb_daemon, verb_settings, verb_template, verb_version, verb_completion,
	verb_audit, verb_policy, verb_secret, verb_ports, verb_agent, verb_attach, verb_prove,
	verb_logs, verb_reset;
