/* SPDX-License-Identifier: Apache-2.0 */
#include "change.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "change_internal.h"
#include "lib/base/mem.h"
#include "lib/base/text/text.h"

const char *change_kind_name(enum change_kind kind)
{
	static const char *const names[CHANGE_N_KINDS] = {[CHANGE_UNICODE] = "unicode",
		[CHANGE_SCRIPT] = "script-change",
		[CHANGE_DEPENDENCY] = "dependency",
		[CHANGE_LOCKFILE] = "lockfile"};

	return names[kind];
}

/* ---- results ---- */

static bool is_reported(const struct change_found *f, enum change_kind kind, const char *text)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].kind == kind && strcmp(f->v[i].text, text) == 0)
			return true;
	return false;
}

void change_report(struct change_found *f, enum change_kind kind, struct slice name)
{
	struct change_name found = {.kind = kind};
	size_t n = MIN(name.n, sizeof(found.text) - 1);

	f->has[kind] = true;
	for (size_t i = 0; i < n; i++)
		found.text[i] = name.p[i] ? (char)name.p[i] : '?';
	if (is_reported(f, kind, found.text))
		return;
	if (f->n == CHANGE_MAX_FOUND)
		f->is_more = true;
	else
		f->v[f->n++] = found;
}

/* ---- manifests ---- */

void change_add(struct change_list *l, enum change_kind kind, struct slice name, struct slice value)
{
	name = slice_trim(name);
	if (name.n == 0)
		return;
	if (l->n == CHANGE_MAX_ENTRIES)
		l->is_full = true;
	else
		l->v[l->n++] = (struct change_entry){kind, name, slice_trim(value)};
}

static int compare_slices(struct slice a, struct slice b)
{
	int r = MIN(a.n, b.n) ? memcmp(a.p, b.p, MIN(a.n, b.n)) : 0;

	return r ? r : (a.n > b.n) - (a.n < b.n);
}

static int compare_entries(const void *x, const void *y)
{
	const struct change_entry *a = x, *b = y;
	int r = (a->kind > b->kind) - (a->kind < b->kind);

	r = r ? r : compare_slices(a->name, b->name);
	return r ? r : compare_slices(a->value, b->value);
}

static void sort_list(struct change_list *l)
{
	if (l->n)
		qsort(l->v, l->n, sizeof(l->v[0]), compare_entries);
}

static void compare_lists(struct change_list *old, struct change_list *new, struct change_found *f)
{
	sort_list(old);
	for (size_t i = 0; i < new->n; i++)
		if (!old->n ||
			!bsearch(&new->v[i], old->v, old->n, sizeof(old->v[0]), compare_entries))
			change_report(f, new->v[i].kind, new->v[i].name);
	if (new->is_full || new->is_bad)
		change_report(f, CHANGE_DEPENDENCY,
			slice_from_str(new->is_bad ? "(the file cannot be read)" : "(more)"));
}

static const struct {
	const char *pattern; /* of the last component */
	change_reader *read;
} manifests[] = {
	{"package.json", change_read_package},
	{"Cargo.toml", change_read_toml},
	{"pyproject.toml", change_read_toml},
	{"*requirements*.txt", change_read_requirements},
	{"*constraints*.txt", change_read_requirements},
	{"go.mod", change_read_gomod},
	{"Gemfile", change_read_gemfile},
	{"gems.rb", change_read_gemfile},
	{"*.gemspec", change_read_gemfile},
	{"pom.xml", change_read_pom},
	{"*.gradle", change_read_gradle},
	{"*.gradle.kts", change_read_gradle},
};

static const char *const lockfiles[] = {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
	"pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "Cargo.lock", "go.sum",
	"go.work.sum", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock", "pixi.lock",
	"conda-lock.yml", "Gemfile.lock", "gems.locked", "composer.lock", "mix.lock", "flake.lock",
	"pubspec.lock", "Podfile.lock", "Package.resolved", "gradle.lockfile",
	"packages.lock.json"};

static void find_dependencies(
	change_reader *read, struct slice old, struct slice new, struct change_found *f)
{
	AUTO_FREE struct change_list *a = xcalloc(1, sizeof(*a));
	AUTO_FREE struct change_list *b = xcalloc(1, sizeof(*b));

	read(old, a);
	read(new, b);
	compare_lists(a, b, f);
}

void change_find(const char *path, struct slice old, struct slice new, struct change_found *ret)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	*ret = (struct change_found){0};
	for (size_t i = 0; i < ARRAY_LEN(lockfiles); i++)
		if (strcmp(lockfiles[i], base) == 0)
			ret->has[CHANGE_LOCKFILE] = true;
	for (size_t i = 0; i < ARRAY_LEN(manifests); i++)
		if (fnmatch(manifests[i].pattern, base, 0) == 0)
			find_dependencies(manifests[i].read, old, new, ret);
	if (!new.n || !memchr(new.p, '\0', new.n))
		change_find_characters(old, new, ret);
}

/* ---- case ---- */

/* Letters whose small form has as many bytes: Latin-1, Greek and Cyrillic. */
static uint32_t fold_letter(uint32_t v)
{
	if ((v >= 0xc0 && v <= 0xde && v != 0xd7) || (v >= 0x391 && v <= 0x3a9) ||
		(v >= 0x410 && v <= 0x42f))
		return v + 0x20;
	return v >= 0x400 && v <= 0x40f ? v + 0x50 : v;
}

void change_fold(char *name)
{
	struct slice rest = slice_from_str(name);

	while (rest.n) {
		uint8_t *p = (uint8_t *)name + strlen(name) - rest.n;
		uint32_t v = 0;
		size_t n = text_character(rest, &v);

		if (n <= 1 && *p >= 'A' && *p <= 'Z')
			*p |= 0x20;
		if (n == 2) {
			v = fold_letter(v);
			p[0] = (uint8_t)(0xc0 | v >> 6);
			p[1] = (uint8_t)(0x80 | (v & 0x3f));
		}
		(void)slice_take(&rest, MAX(n, (size_t)1));
	}
}
