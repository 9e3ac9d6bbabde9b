/* SPDX-License-Identifier: Apache-2.0 */
#include "closed.h"

#include "lib/base/mem.h"
#include "rulebook_edit.h"

static int keep_denies(
	const struct rules *all, const uint32_t *pick, size_t n, struct rules *to, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		AUTO_RULE struct rule rule = {0};

		if (all->rule[pick[i]].effect != RULE_DENY)
			continue;
		rule = rulebook_copy(&all->rule[pick[i]]);
		r = rules_add(to, &rule, err);
	}
	return r;
}

static int add_only(const struct spec *spec, struct rules *to, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < spec->n_only && r == 0; i++) {
		AUTO_RULE struct rule rule = {0};

		r = rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(spec->only[i]), &rule, err);
		if (r < 0)
			return r;
		rule.id = xasprintf("only-%zu", i + 1);
		rule.origin = xstrdup("only");
		r = rules_add(to, &rule, err);
	}
	return r;
}

int closed_rules(const struct spec *spec, const struct rules *all, const uint32_t *pick, size_t n,
	struct rules *ret, struct err *err)
{
	AUTO_RULES struct rules to = {0};
	int r = keep_denies(all, pick, n, &to, err);

	if (r == 0)
		r = add_only(spec, &to, err);
	if (r < 0)
		return r;
	*ret = to;
	to = (struct rules){0};
	return 0;
}
