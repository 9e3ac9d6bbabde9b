/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include "rulebook.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/mem.h"

static bool has_rules(struct rulebook *b)
{
	rulebook_refresh(b);
	return b->exists && !b->fault.text[0];
}

int scope_prepare(
	struct sbxd *d, const char *sandbox, const char *to, uint64_t *ret_n, struct err *err)
{
	struct rulebook *b = d->rulebook;

	*ret_n = has_rules(b) ? rulebook_count_scope(&b->rules, sandbox) : 0;
	if (*ret_n == 0)
		return 0;
	(void)rulebook_move_scope(&b->rules, sandbox, to);
	return rulebook_prepare(b, err);
}

int scope_commit(struct sbxd *d, struct err *err)
{
	return d->rulebook->prepared ? rulebook_commit(d->rulebook, err) : 0;
}

void scope_abandon(struct sbxd *d)
{
	rulebook_abandon(d->rulebook);
}

int scope_drop_left_over(struct sbxd *d, const char *sandbox, struct err *err)
{
	struct rulebook *b = d->rulebook;
	AUTO_FREE char *reason = xasprintf("stale rule of a removed sandbox named %s", sandbox);
	struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE,
		.action = "rule-rm",
		.sandbox = sandbox,
		.reason = reason};
	int r;

	if (!has_rules(b))
		return 0;
	e.count = rulebook_drop_left_over(&b->rules, sandbox);
	if (e.count == 0)
		return 0;
	r = rulebook_prepare(b, err);
	if (r == 0)
		r = journal_append(d, &e, err);
	if (r == 0)
		r = rulebook_commit(b, err);
	if (r < 0)
		rulebook_abandon(b);
	return r;
}
