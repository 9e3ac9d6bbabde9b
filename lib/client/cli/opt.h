/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt - the options of a verb, read by one table.
 *
 * How      A verb lists its options as struct opt_def rows. opt_parse takes short clusters (-it),
 *          `-m4g`, `-m 4g`, `--name x`, `--name=x`, options after positionals, and `--`; arguments
 *          after `--` are in `rest`. A verb that runs another command line (exec) stops taking
 *          options after its first positionals.
 * Trust    The user's own arguments.
 * Owns     struct opts points into argv and owns only its lists; opts_done frees those.
 * Limits   OPT_MAX_DEFS options a verb.
 * See      opt_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define OPT_MAX_DEFS 48

struct opt_def {
	char letter;	  /* 0 when there is only a name */
	const char *name; /* without dashes */
	const char *arg;  /* what the value is called in help; NULL for a flag */
	const char *help;
	bool many;     /* may be repeated */
	bool optional; /* --name alone is the empty value, only --name=x has one; no letter */
	bool hidden;
	const char *heading; /* of the options from here on, in help; NULL: as the row before */
};

struct opt_list {
	const char **v; /* NULL-terminated when n > 0 */
	size_t n;
};

struct opts {
	const struct opt_def *defs;
	char **argv;			      /* all words, as opt_parse got them */
	struct opt_list values[OPT_MAX_DEFS]; /* by row; a flag that was given has n > 0 */
	struct opt_list args;
	struct opt_list rest; /* after `--` */
	bool has_rest;
};

/* argv without the verb. stop_after: with that many positionals the others are all positionals too;
 * 0 for never. -EINVAL with a sentence. */
int opt_parse(const struct opt_def *defs, unsigned stop_after, int argc, char **argv,
	struct opts *ret, struct err *err) MUST_CHECK;
void opts_done(struct opts *o);

/* A name that is not in the table is a bug. */
bool opts_has(const struct opts *o, const char *name);
/* The value given last, or NULL. */
const char *opts_value(const struct opts *o, const char *name);
const struct opt_list *opts_list(const struct opts *o, const char *name);

void opt_list_add(struct opt_list *l, const char *s);
/* The word of a NULL-terminated list that is nearest to what was typed, or NULL. */
const char *opt_nearest(const char *typed, const char *const *words);
