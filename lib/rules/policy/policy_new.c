/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/mem.h"
#include "table.h"

struct policy *policy_new(const struct rules *rules, const char *sandbox)
{
	void *bytes[POLICY_N_PARTS] = {0};
	size_t n[POLICY_N_PARTS] = {0};

	for (size_t i = 0; i < (sandbox ? POLICY_N_PARTS : 1); i++) {
		struct table_wish wish = {.part = (enum policy_part)i, .rules = rules};
		AUTO_FREE uint32_t *pick = NULL;

		if (i == POLICY_MANAGED) /* see policy_limit */
			continue;
		pick = table_pick(rules, i == POLICY_OWN ? sandbox : NULL, &wish.n);
		wish.pick = pick;
		bytes[i] = table_build(&wish, &n[i]);
	}
	return policy_from(bytes, n);
}
