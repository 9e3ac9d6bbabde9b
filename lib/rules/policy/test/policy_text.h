/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_text - from the text of a policy to its tables, as sbxd makes them, for tests.
 *
 * How      Without policy_text_limit, there is no managed policy. A text that cannot be read
 *          becomes a table with a fault, which denies everything.
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
			.unset = i == POLICY_MANAGED,
			.fault = r < 0 && i != POLICY_MANAGED ? err_text(&err, r) : NULL};
		AUTO_FREE uint32_t *pick =
			table_pick(&rules, i == POLICY_OWN ? sandbox : NULL, &wish.n);

		wish.pick = pick;
		ret[i] = table_make(&wish);
		if (ret[i] < 0)
			abort();
	}
}

/* The same with a managed policy. */
static inline void policy_text_limit(struct slice managed, int files[POLICY_N_PARTS])
{
	AUTO_RULES struct rules rules = {0};
	struct table_wish wish = {.part = POLICY_MANAGED, .rules = &rules};
	AUTO_FREE uint32_t *pick = NULL;

	if (rules_decode(managed, "managed", &rules, NULL) < 0)
		abort();
	pick = table_pick(&rules, NULL, &wish.n);
	wish.pick = pick;
	fd_close(&files[POLICY_MANAGED]);
	files[POLICY_MANAGED] = table_make(&wish);
}

/* As sbxd, a keeper and sbx-egress together: compiled into files, and opened. managed: p is NULL:
 * there is none. */
static inline struct policy *policy_load_limited(
	struct slice text, struct slice managed, const char *name, const char *sandbox)
{
	int files[POLICY_N_PARTS];
	struct policy *p;

	policy_text_files(text, name, sandbox, files);
	if (managed.p)
		policy_text_limit(managed, files);
	p = policy_open(files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&files[i]);
	return p;
}

static inline struct policy *policy_load(struct slice text, const char *name, const char *sandbox)
{
	return policy_load_limited(text, slice_of(NULL, 0), name, sandbox);
}
