/* SPDX-License-Identifier: Apache-2.0 */
#include "moved.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"

#define MAX_FDS 16

/* nftw passes nothing to its callback. */
static struct {
	struct moved *ret;
	uint64_t since_ms, left;
	size_t skip; /* bytes of the directory in each path */
} walk;

static int see_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	uint64_t ms = (uint64_t)st->st_ctim.tv_sec * 1000 + (uint64_t)st->st_ctim.tv_nsec / 1000000;
	struct moved *m = walk.ret;

	(void)at;
	if (walk.left-- == 0) {
		m->is_cut = true;
		return 1;
	}
	if ((type != FTW_F && type != FTW_SL) || ms < walk.since_ms)
		return 0;
	m->n++;
	if (m->n_examples < MOVED_EXAMPLES)
		m->examples[m->n_examples++] = xstrdup(path + walk.skip);
	return 0;
}

void moved_find(const char *dir, uint64_t since_ms, struct moved *ret)
{
	walk.ret = ret;
	walk.since_ms = since_ms;
	walk.left = MOVED_MAX;
	walk.skip = strlen(dir) + 1;
	(void)nftw(dir, see_entry, MAX_FDS, FTW_PHYS | FTW_MOUNT);
}

void moved_done(struct moved *m)
{
	for (size_t i = 0; i < m->n_examples; i++)
		free(m->examples[i]);
	*m = (struct moved){0};
}
