/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_text - from the text of a policy to its two tables, as sbxd makes them, for tests.
 *
 * How      A text that cannot be read becomes a table with a fault, which denies everything.
 * Trust    Test code.
 */
#pragma once

#include <stdlib.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/table.h"

static inline void policy_text_files(
	struct slice text, const char *name, const char *sandbox, int ret[POLICY_N_PARTS])
{
	AUTO_RULES struct rules rules = {0};
	struct err err = {0};
	int r = rules_decode(text, name, &rules, &err);

	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		struct table_wish wish = {.part = (enum policy_part)i,
			.rules = &rules,
			.fault = r < 0 ? err_text(&err, r) : NULL};
		AUTO_FREE uint32_t *pick =
			table_pick(&rules, i == POLICY_OWN ? sandbox : NULL, &wish.n);

		wish.pick = pick;
		ret[i] = table_make(&wish);
		if (ret[i] < 0)
			abort();
	}
}

/* As sbxd, a keeper and sbx-egress together: compiled into files, and opened. */
static inline struct policy *policy_load(struct slice text, const char *name, const char *sandbox)
{
	int files[POLICY_N_PARTS];
	struct policy *p;

	policy_text_files(text, name, sandbox, files);
	p = policy_open(files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&files[i]);
	return p;
}
