/* SPDX-License-Identifier: Apache-2.0 */
#include "lost.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "git.h"

#define HEADS "refs/heads/"

void lost_done(struct lost *l)
{
	mem_free_list(l->oids, l->n);
	mem_free_list(l->names, l->n);
	*l = (struct lost){0};
}

bool lost_is_kept(const struct repo *repo, const char *oid, const char *const *where)
{
	const char *args[] = {
		"for-each-ref", "--count=1", "--format=%(refname)", "--contains", oid, NULL};
	struct git_run g = {.git_dir = repo->git_dir, .args = args, .more = where};
	struct err ignored = {0};
	int r = git_run(&g, &ignored);
	AUTO_FREE char *out = g.out;

	return r == 0 && out[0];
}

void lost_add(struct lost *l, const char *oid, const char *name)
{
	if ((l->n & (l->n - 1)) == 0) {
		size_t room = MAX(l->n * 2, (size_t)16);

		l->oids = xrealloc(l->oids, room * sizeof(*l->oids));
		l->names = xrealloc(l->names, room * sizeof(*l->names));
	}
	l->oids[l->n] = xstrdup(oid);
	l->names[l->n++] = xstrdup(name);
}

void lost_find(const struct repo *repo, const struct refs *refs, struct lost *ret)
{
	for (size_t i = 0; i < refs->n; i++) {
		const struct ref *ref = &refs->v[i];
		bool detached = strcmp(ref->name, "HEAD") == 0 && !refs->head;

		if ((detached || str_starts(ref->name, HEADS)) &&
			!lost_is_kept(repo, ref->oid, NULL))
			lost_add(ret, ref->oid, detached ? "HEAD" : ref->name + strlen(HEADS));
	}
}

int lost_keep_ref(const struct repo *repo, const char *sandbox, const char *name, const char *oid,
	struct problem *p)
{
	AUTO_FREE char *ref = xasprintf("refs/sbx/%s/%s", sandbox, name);
	const char *args[] = {
		"update-ref", "--create-reflog", "-m", "sbx: kept from a sandbox", ref, oid, NULL};
	struct git_run g = {.git_dir = repo->git_dir, .args = args};
	int r = git_must(&g, "cannot keep a branch of the sandbox", &p->err);

	free(g.out);
	return r;
}

int lost_fetch(const struct transfer *pl, const struct lost *l, struct problem *p)
{
	AUTO_FREE char *keep = NULL;
	int r = transfer_fetch(pl, l->oids, l->n, &keep, p);

	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = lost_keep_ref(&pl->repo, pl->ref, l->names[i], l->oids[i], p);
	if (keep)
		(void)unlink(keep);
	return r;
}
