/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autorun_internal - the compiled list, for autorun.c and autorun_parse.c only.
 *
 * How      Each component of each pattern is a step. A place is the set of steps that the next name
 *          can match. The first steps are in every place, so they are not in the set but in tables
 *          by the first byte of the name.
 * Trust    Names are a guest's. The reader of the list is autorun_parse.c.
 */
#pragma once

#include "autorun.h"

#define AUTORUN_NO_STEP UINT16_MAX

enum autorun_step_type {
	AUTORUN_LITERAL,
	AUTORUN_SUFFIX, /* "*" and a literal */
	AUTORUN_GLOB,
	AUTORUN_ANY,  /* "*" */
	AUTORUN_DEEP, /* "**" */
};

struct autorun_step {
	enum autorun_step_type type;
	char *text; /* of a suffix without the star */
	size_t n;
	uint16_t row;
	uint16_t next_first; /* the next first step with the same byte */
	bool last;
};

struct autorun_list {
	struct autorun_row rows[AUTORUN_MAX_ROWS];
	struct autorun_step steps[AUTORUN_MAX_STEPS];
	size_t n_rows, n_steps;
	uint16_t first[256]; /* literals, and globs that begin with one, by their first byte */
	uint16_t first_other;
	struct autorun_place root;
	/* Of rows that refuse, and these with the exceptions of them. */
	struct autorun_place refuses[GUARD_N_LEVELS], differs[GUARD_N_LEVELS];
};

/* What a mode of the list means at a level. */
enum autorun_mode autorun_effective(enum autorun_mode mode, enum guard_level level);
/* Adds the step, and those that can be skipped after it. */
void autorun_add_step(const struct autorun_list *l, struct autorun_place *place, size_t step);
