/* SPDX-License-Identifier: Apache-2.0 */
#include "commits_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "src/sbx/clone/clone.h"

#define NAME "commits"
#define MAX_FILE (16u << 20)

void commits_list_done(struct commits_list *l)
{
	for (size_t i = 0; i < ARRAY_LEN(l->v); i++) {
		mem_free_list(l->v[i].oids, l->v[i].n);
		mem_free_list(l->v[i].branches, l->v[i].n);
	}
}

void commits_list_add(struct commits_list *l, size_t ws, const char *oid, const char *branch)
{
	struct commits_rows *r = &l->v[ws];

	if ((r->n & (r->n - 1)) == 0) {
		size_t room = MAX(r->n * 2, (size_t)16);

		r->oids = xrealloc(r->oids, room * sizeof(*r->oids));
		r->branches = xrealloc(r->branches, room * sizeof(*r->branches));
	}
	r->oids[r->n] = xstrdup(oid);
	r->branches[r->n++] = xstrdup(branch);
}

size_t commits_list_count(const struct commits_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(l->v); i++)
		n += l->v[i].n;
	return n;
}

/* Names of branches have no space and no newline. */
int commits_list_save(const struct area *a, const struct commits_list *l, struct err *err)
{
	AUTO_FREE char *path = area_path(a, NAME), *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return err_errno(err, -errno, "cannot write %s", path);
	for (size_t ws = 0; ws < ARRAY_LEN(l->v); ws++)
		for (size_t i = 0; i < l->v[ws].n; i++)
			(void)fprintf(f, "%zu %s %s\n", ws, l->v[ws].oids[i], l->v[ws].branches[i]);
	if (fclose(f) != 0)
		return err_errno(err, -errno, "cannot write %s", path);
	return file_save(path, slice_of(text, n), err);
}

static int add_line(const struct area *a, struct commits_list *l, char *line)
{
	char *oid = strchr(line, ' '), *name = oid ? strchr(oid + 1, ' ') : NULL;
	uint64_t ws;

	if (!name)
		return -EBADMSG;
	*oid++ = '\0';
	*name++ = '\0';
	if (str_to_u64(line, 0, SPEC_MAX_WORKSPACES - 1, &ws) < 0 || ws >= a->n ||
		!clone_is_branch(oid, name))
		return -EBADMSG;
	commits_list_add(l, ws, oid, name);
	return 0;
}

int commits_list_load(const struct area *a, struct commits_list *ret, struct problem *p)
{
	AUTO_FREE char *path = area_path(a, NAME), *text = NULL;
	char *save = NULL;
	size_t n = 0;
	int r = file_load(path, MAX_FILE, &text, &n, &p->err);

	if (r == -ENOENT) {
		(void)err_set(&p->err, r, "the commits of sandbox '%s' were not reviewed", a->name);
		return problem_hint(p, r, "sbx review --git %s", a->name);
	}
	for (char *s = r == 0 ? strtok_r(text, "\n", &save) : NULL; s;
		s = strtok_r(NULL, "\n", &save))
		if (add_line(a, ret, s) < 0)
			return err_set(&p->err, -EBADMSG, "%s is damaged", path);
	return r;
}
