/* SPDX-License-Identifier: Apache-2.0 */
/* First byte: the file name. Second byte: which share of the rest is the old text. A text compared
 * with itself has no new dependency, and folding twice is folding once. */
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/change.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"package.json", "Cargo.toml", "pyproject.toml",
	"requirements.txt", "go.mod", "Gemfile", "pom.xml", "build.gradle", "x.gemspec", "a.c"};

static void check_found(const struct change_found *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->has[f->v[i].kind] || !f->v[i].text[0] ||
			strnlen(f->v[i].text, CHANGE_MAX_NAME) == CHANGE_MAX_NAME)
			abort();
}

static void check_fold(struct slice s)
{
	AUTO_FREE char *a = xcalloc(1, s.n + 1);
	AUTO_FREE char *b = NULL;
	size_t n;

	if (s.n)
		memcpy(a, s.p, s.n);
	n = strlen(a);
	change_fold(a);
	b = xstrdup(a);
	change_fold(b);
	if (strcmp(a, b) != 0 || strlen(a) != n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data + 2, size > 2 ? size - 2 : 0), old;
	struct change_found f;
	const char *name;

	if (size < 2)
		return 0;
	name = names[data[0] % ARRAY_LEN(names)];
	change_find(name, rest, rest, &f);
	for (size_t i = 0; i < f.n; i++)
		if (f.v[i].text[0] != '(' && f.v[i].kind != CHANGE_UNICODE)
			abort();
	check_fold(rest);
	old = slice_take(&rest, rest.n * data[1] / 255);
	change_find(name, old, rest, &f);
	check_found(&f);
	return 0;
}
