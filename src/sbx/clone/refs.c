/* SPDX-License-Identifier: Apache-2.0 */
#include "refs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/cli/ui.h"

#define HEADS "refs/heads/"
#define TAGS "refs/tags/"

void refs_done(struct refs *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].name);
	free(r->v);
	free(r->head);
	*r = (struct refs){0};
}

bool refs_is_oid(struct slice s, size_t n_hex)
{
	if (s.n != n_hex)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("0123456789abcdef", s.p[i]) || !s.p[i])
			return false;
	return true;
}

/* One component between slashes. */
static bool is_part(const char *s, size_t n)
{
	static const char lock[] = ".lock";
	size_t k = sizeof(lock) - 1;

	if (n == 0 || s[0] == '.' || s[0] == '-' || s[n - 1] == '.')
		return false;
	return n < k || memcmp(s + n - k, lock, k) != 0;
}

/* Characters that git refuses in a ref, and what a terminal would obey or hide. */
static bool has_bad_bytes(const char *name)
{
	AUTO_FREE char *clean = xstrdup(name);

	ui_clean(clean);
	return strcmp(clean, name) != 0 || strpbrk(name, " ~^:?*[\\") || strstr(name, "..") ||
	       strstr(name, "@{");
}

bool refs_is_name(const char *name)
{
	const char *s = str_starts(name, HEADS)	 ? name + strlen(HEADS)
			: str_starts(name, TAGS) ? name + strlen(TAGS)
						 : NULL;

	if (!s || strlen(name) > REFS_MAX_NAME || has_bad_bytes(name) || strcmp(s, "HEAD") == 0 ||
		strcmp(s, "@") == 0)
		return false;
	for (;; s++) {
		size_t n = strcspn(s, "/");

		if (!is_part(s, n))
			return false;
		s += n;
		if (!*s)
			return true;
	}
}

static int refuse_name(const char *name, struct err *err)
{
	AUTO_FREE char *clean = xstrdup(name);

	ui_clean(clean);
	return err_set(err, -EBADMSG, "invalid ref name '%.100s' in the sandbox", clean);
}

static int add_ref(struct refs *r, struct slice oid, const char *name, struct err *err)
{
	bool known = str_starts(name, HEADS) || str_starts(name, TAGS);
	struct ref *ref;

	if (str_starts(name, TAGS) && str_ends(name, "^{}"))
		return 0; /* the object of a tag */
	if (strcmp(name, "HEAD") != 0 && !known)
		return 0;
	if (known && !refs_is_name(name))
		return refuse_name(name, err);
	if (r->n == REFS_MAX)
		return err_set(err, -E2BIG, "the sandbox has more than %d refs", REFS_MAX);
	if ((r->n & (r->n - 1)) == 0)
		r->v = xrealloc(r->v, MAX(r->n * 2, (size_t)16) * sizeof(*r->v));
	ref = &r->v[r->n++];
	*ref = (struct ref){.name = xstrdup(name)};
	memcpy(ref->oid, oid.p, oid.n);
	return 0;
}

/* "ref: NAME<tab>HEAD" or "OID<tab>NAME". */
static int take_line(struct refs *r, struct slice line, size_t n_hex, struct err *err)
{
	static const char symref[] = "ref: ";
	const uint8_t *tab = memchr(line.p, '\t', line.n);
	struct slice left = slice_of(line.p, tab ? (size_t)(tab - line.p) : 0);
	AUTO_FREE char *name = tab ? slice_dup(slice_of(tab + 1, line.n - left.n - 1)) : NULL;
	size_t k = sizeof(symref) - 1;

	if (!name)
		return err_set(err, -EBADMSG, "invalid list of refs from the sandbox");
	if (left.n > k && memcmp(left.p, symref, k) == 0) {
		AUTO_FREE char *target = slice_dup(slice_of(left.p + k, left.n - k));

		if (strcmp(name, "HEAD") != 0)
			return 0;
		if (!target || r->head)
			return err_set(err, -EBADMSG, "invalid HEAD in the sandbox");
		if (!refs_is_name(target))
			return refuse_name(target, err);
		r->head = TAKE(target);
		return 0;
	}
	if (!refs_is_oid(left, n_hex))
		return err_set(err, -EBADMSG, "invalid object name from the sandbox");
	return add_ref(r, left, name, err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ref *)a)->name, ((const struct ref *)b)->name);
}

static int parse_all(struct slice text, size_t n_hex, struct refs *r, struct err *err)
{
	int e = 0;

	if (text.n > REFS_MAX_TEXT)
		return err_set(err, -E2BIG, "the sandbox lists too many refs");
	while (text.n > 0 && e == 0)
		e = take_line(r, slice_next_line(&text), n_hex, err);
	if (e == 0 && r->n > 1)
		qsort(r->v, r->n, sizeof(*r->v), by_name);
	for (size_t i = 1; e == 0 && i < r->n; i++)
		if (strcmp(r->v[i].name, r->v[i - 1].name) == 0)
			return err_set(err, -EBADMSG, "the sandbox lists a ref twice");
	return e;
}

int refs_parse(struct slice text, size_t n_hex, struct refs *ret, struct err *err)
{
	int r = parse_all(text, n_hex, ret, err);

	if (r < 0)
		refs_done(ret);
	return r;
}
