/* SPDX-License-Identifier: Apache-2.0 */
#include "closed.h"

#include <errno.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/rules.h"

#define NOTHING "policy 1\nend\n"

static int keep_denies(struct rules *from, struct rules *to, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < from->n && r == 0; i++) {
		if (from->rule[i].effect != RULE_DENY)
			continue;
		from->rule[i].group = 0;
		r = rules_add(to, &from->rule[i], err);
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

char *closed_policy(const struct spec *spec, struct slice text)
{
	AUTO_RULES struct rules from = {0}, to = {0};
	struct err err = {0};

	if (rules_decode(text, "policy", &from, &err) < 0)
		return text.n ? xstrndup((const char *)text.p, text.n) : xstrdup("");
	if (keep_denies(&from, &to, &err) < 0 || add_only(spec, &to, &err) < 0) {
		log_error("all traffic is denied: %s", err.text);
		return xstrdup(NOTHING);
	}
	return rules_encode(&to, RULE_PRINT_ALL);
}
