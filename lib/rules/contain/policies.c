/* SPDX-License-Identifier: Apache-2.0 */
#include "policies.h"

#include "lib/base/mem.h"

const struct policy *policies_find(struct policies *all, struct slice sandbox)
{
	struct policies_row *row;

	if (all->n && slice_eq_str(sandbox, all->row[all->last].sandbox))
		return all->row[all->last].policy;
	for (all->last = 0; all->last < all->n; all->last++)
		if (slice_eq_str(sandbox, all->row[all->last].sandbox))
			return all->row[all->last].policy;
	if (all->n == all->room) {
		all->room = MAX(2 * all->room, 8u);
		all->row = xrealloc(all->row, all->room * sizeof(*all->row));
	}
	row = &all->row[all->n++];
	row->sandbox = xstrndup(sandbox.p ? (const char *)sandbox.p : "", sandbox.n);
	row->policy = contain_compile(all->rules, all->limit, row->sandbox);
	return row->policy;
}

void policies_done(struct policies *all)
{
	for (size_t i = 0; i < all->n; i++) {
		free(all->row[i].sandbox);
		policy_free(all->row[i].policy);
	}
	free(all->row);
	*all = (struct policies){0};
}
