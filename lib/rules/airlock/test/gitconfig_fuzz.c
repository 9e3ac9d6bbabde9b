/* SPDX-License-Identifier: Apache-2.0 */
/* Old text, NUL, new text. What is accepted is accepted again, unchanged, and has no key outside
 * of the allow list that the old text does not have. */
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/gitconfig_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool has_entry(const struct gitconfig *c, const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct gitconfig_entry *o = &c->entry[i];

		if (slice_eq(o->section, e->section) && slice_eq(o->sub, e->sub) &&
			slice_eq(o->key, e->key) && slice_eq(o->value, e->value) &&
			o->has_value == e->has_value)
			return true;
	}
	return false;
}

static void check_result(struct slice old, const char *text, size_t n)
{
	AUTO_GITCONFIG struct gitconfig a = {0}, b = {0};

	must(gitconfig_parse(old, &a, NULL) == 0);
	must(gitconfig_parse(slice_of(text, n), &b, NULL) == 0);
	for (size_t i = 0; i < b.n; i++)
		must(gitconfig_is_comment(&b.entry[i]) || gitconfig_find_rule(&b.entry[i]) ||
			has_entry(&a, &b.entry[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gitconfig_place place = {.path = size % 2 ? ".git/config" : ".git/modules/a/config"};
	const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
	struct slice rest = slice_of(data, size), old = {0};
	AUTO_FREE char *one = NULL, *two = NULL;
	size_t n = 0, m = 0;

	if (nul) {
		old = slice_take(&rest, (size_t)(nul - data));
		(void)slice_take(&rest, 1);
	}
	if (gitconfig_check((const char *)old.p, old.n, (const char *)rest.p, rest.n, &place, &one,
		    &n, NULL) < 0)
		return 0;
	check_result(old, one, n);
	must(gitconfig_check((const char *)old.p, old.n, one, n, &place, &two, &m, NULL) == 0);
	must(n == m && !memcmp(one, two, n));
	return 0;
}
