/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clerk_internal - the state of a push. Internal to src/clerk/git.
 *
 * How      clerk.c has the order of events, effects.c and preview.c write texts.
 * Trust    As clerk.h.
 */
#pragma once

#include "clerk.h"

struct clerk {
	struct clerk_config config;
	struct clerk_sink sink;
	struct autorun_list *list;
	struct gitcommands commands;
	bool has_commands, judged;
	uint8_t *lines; /* of the body, up to its pack */
	size_t n_lines;
	struct gitpack *pack; /* of the body, until it is judged */
	struct gitpush *push;
	struct gitpush_need need;
	struct gitfetch fetch;
	struct gitpack *answer;
	bool answer_failed;
};

/* Passes each effect of a judged push to the sink. */
void effects_put(const struct clerk *c);
/* One text for a person. */
void preview_put(const struct clerk *c);
