/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

#include <errno.h>
#include <malloc.h>
#include "closed.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define TRIM_RULES 1000 /* compiling more leaves much free memory in the heap */

void tables_init(struct tables *t)
{
	*t = (struct tables){.all = -1, .managed = -1};
}

void tables_done(struct tables *t)
{
	fd_close(&t->all);
	fd_close(&t->managed);
	free(TAKE(t->scoped));
	t->made = false;
}

static int compare_scopes(const void *va, const void *vb, void *arg)
{
	const struct rules *rules = arg;
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;
	int c = strcmp(rules->rule[a].sandbox, rules->rule[b].sandbox);

	return c ? c : (a > b) - (a < b);
}

static void index_scopes(struct tables *t, struct rules *rules)
{
	t->scoped = xcalloc(rules->n + 1, sizeof(*t->scoped));
	t->n_scoped = 0;
	for (size_t i = 0; i < rules->n; i++)
		if (rules->rule[i].sandbox)
			t->scoped[t->n_scoped++] = (uint32_t)i;
	t->scoped = xrealloc(t->scoped, (t->n_scoped + 1) * sizeof(*t->scoped));
	qsort_r(t->scoped, t->n_scoped, sizeof(*t->scoped), compare_scopes, rules);
}

/* The place of the first rule whose sandbox is not before this name. */
static size_t first_of(const struct tables *t, const struct rules *rules, const char *name)
{
	size_t lo = 0, hi = t->n_scoped;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (strcmp(rules->rule[t->scoped[mid]].sandbox, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static size_t count_of(
	const struct tables *t, const struct rules *rules, size_t first, const char *name)
{
	size_t n = 0;

	while (first + n < t->n_scoped &&
		strcmp(rules->rule[t->scoped[first + n]].sandbox, name) == 0)
		n++;
	return n;
}

static int make_managed(const struct managed *m)
{
	AUTO_FREE char *fault =
		m->fault.text[0] ? xasprintf("the managed policy cannot be used: %s", m->fault.text)
				 : NULL;
	struct table_wish wish = {
		.part = POLICY_MANAGED, .rules = &m->rules, .unset = !m->exists, .fault = fault};
	AUTO_FREE uint32_t *pick = table_pick(&m->rules, NULL, &wish.n);

	wish.pick = pick;
	return table_make(&wish);
}

static int make_all(struct tables *t, struct rulebook *b)
{
	struct table_wish wish = {.part = POLICY_ALL, .rules = &b->rules};
	AUTO_FREE uint32_t *pick = NULL;

	if (b->prepared)
		return -EAGAIN; /* the rules in memory are not committed */
	rulebook_refresh(b);
	if (t->made && t->revision == b->revision)
		return 0;
	wish.unset = !b->exists;
	wish.fault = b->fault.text[0] && b->exists ? b->fault.text : NULL;
	tables_done(t);
	pick = table_pick(&b->rules, NULL, &wish.n);
	wish.pick = pick;
	t->all = table_make(&wish);
	if (t->all < 0)
		return t->all;
	t->managed = make_managed(&b->managed);
	if (t->managed < 0)
		return t->managed;
	index_scopes(t, &b->rules);
	t->revision = b->revision;
	t->made = true;
	if (b->rules.n > TRIM_RULES)
		(void)malloc_trim(0);
	return 0;
}

/* A sandbox with `only` gets rules of its own list. */
static int make_own(const struct tables *t, const struct rules *rules, const struct spec *spec)
{
	size_t first = first_of(t, rules, spec->name);
	struct table_wish wish = {.part = POLICY_OWN,
		.rules = rules,
		.pick = t->scoped + first,
		.n = count_of(t, rules, first, spec->name),
		.only = spec->n_only > 0};
	AUTO_RULES struct rules closed = {0};
	AUTO_FREE uint32_t *pick = NULL;
	struct err err = {0};
	int r;

	if (!wish.only)
		return table_make(&wish);
	r = closed_rules(spec, rules, wish.pick, wish.n, &closed, &err);
	wish.rules = &closed;
	wish.n = closed.n;
	wish.fault = r < 0 ? err_text(&err, r) : NULL;
	pick = xcalloc(closed.n + 1, sizeof(*pick));
	for (size_t i = 0; i < closed.n; i++)
		pick[i] = (uint32_t)i;
	wish.pick = pick;
	return table_make(&wish);
}

int tables_get(
	struct tables *t, struct rulebook *b, const struct spec *spec, int ret[POLICY_N_PARTS])
{
	int r = make_all(t, b);

	ret[POLICY_ALL] = ret[POLICY_MANAGED] = ret[POLICY_OWN] = -1;
	if (r == 0)
		r = ret[POLICY_OWN] = make_own(t, &b->rules, spec);
	if (r < 0)
		return r;
	ret[POLICY_ALL] = t->all;
	ret[POLICY_MANAGED] = t->managed;
	return 0;
}

struct policy *tables_open(struct tables *t, struct rulebook *b, const char *name)
{
	struct spec spec = {0};
	int files[POLICY_N_PARTS];
	struct policy *p;

	/* No sandbox has an empty name. */
	(void)!str_copy(spec.name, sizeof(spec.name), name ? name : "");
	(void)!tables_get(t, b, &spec, files);
	p = policy_open(files);
	fd_close(&files[POLICY_OWN]);
	return p;
}
