/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb - the row of a command: name, options, help.
 *
 * How      verb_table lists the rows; help, completion and the parser read them. A row with `subs`
 *          is a group of commands (daemon, settings, template).
 * Trust    Our own constants.
 * See      main.c, completion.h, tests/cli
 */
#pragma once

#include "lib/client/cli/opt.h"
#include "lib/client/cli/ui.h"

/* Kind of a positional, for completion. */
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
	VERB_TEMPLATE,
	VERB_PACK,
	VERB_HOLD
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
