/* SPDX-License-Identifier: Apache-2.0 */
/* What is below a directory that is about to move. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"

/* A directory as it is named before and after. */
struct side {
	struct guard_path *path;
	size_t n; /* bytes of path->text that are the directory */
	struct autorun_place place;
	bool in_tree; /* its reports are made for a directory above */
};

struct scan {
	struct guard *g;
	size_t n_entries;
};

static int scan_dir(struct scan *s, int dir, const char *name, struct side sides[2], int depth);

static int append_name(struct side *side, const char *name)
{
	size_t n = strlen(name);

	if (side->n + n + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	side->path->text[side->n] = '/';
	memcpy(side->path->text + side->n + 1, name, n + 1);
	return 0;
}

/* One entry, seen from one side. Leaves the side as that of the entry. */
static int look_at_entry(struct scan *s, const char *name, bool is_link, struct side *side)
{
	size_t n = strlen(name);
	struct autorun_match m;
	int r = append_name(side, name);

	if (r < 0)
		return r;
	autorun_match(s->g->list, &side->place, name, n, s->g->level, &m);
	if (guard_is_refused(&m) || (is_link && m.anchor))
		return -EACCES;
	if (guard_is_reported(&m) && !side->in_tree) {
		r = guard_path_set(s->g, side->path->text, NULL, side->path);
		if (r == 0)
			r = guard_note(s->g, side->path, DIRTY_RENAME);
		side->in_tree = m.mode == AUTORUN_REPORT_TREE;
	}
	autorun_enter(s->g->list, &side->place, name, n, &side->place);
	side->n += n + 1;
	return r;
}

static int type_of_entry(int dir, const struct dirent *e, unsigned char *ret)
{
	struct stat st;

	*ret = e->d_type;
	if (e->d_type != DT_UNKNOWN)
		return 0;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -EACCES;
	*ret = IFTODT(st.st_mode);
	return 0;
}

static int scan_entry(
	struct scan *s, int dir, const struct dirent *e, const struct side sides[2], int depth)
{
	struct side below[2] = {sides[0], sides[1]};
	unsigned char type;
	int r = type_of_entry(dir, e, &type);

	if (r == 0 && ++s->n_entries > GUARD_MAX_SCAN)
		r = -EACCES;
	for (int i = 0; r == 0 && i < 2; i++)
		r = look_at_entry(s, e->d_name, type == DT_LNK, &below[i]);
	return r == 0 && type == DT_DIR ? scan_dir(s, dir, e->d_name, below, depth + 1) : r;
}

static int scan_dir(struct scan *s, int dir, const char *name, struct side sides[2], int depth)
{
	AUTO_DIR DIR *d = NULL;
	struct dirent *e;
	int r = 0;

	if (depth > GUARD_MAX_DEPTH)
		return -EACCES;
	d = dir_of(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (!d)
		return -EACCES;
	while (r == 0 && (e = dir_next(d)))
		r = scan_entry(s, dirfd(d), e, sides, depth);
	return r == 0 && errno != 0 ? -EACCES : r;
}

static bool is_in_tree(const struct guard *g, const struct guard_path *p)
{
	struct autorun_match m;
	size_t tree;

	autorun_find(g->list, p->rel, g->level, &m, &tree);
	return tree > 0;
}

int guard_scan(struct guard *g, int dir, const char *name, const struct guard_path *from,
	const struct guard_path *to)
{
	static struct guard_path paths[2];
	const struct guard_path *given[2] = {from, to};
	struct side sides[2] = {0};
	struct scan s = {.g = g};

	for (int i = 0; i < 2; i++) {
		int r = guard_path_set(g, given[i]->text, NULL, &paths[i]);

		if (r < 0)
			return r;
		sides[i].path = &paths[i];
		sides[i].n = strlen(paths[i].text);
		sides[i].in_tree = is_in_tree(g, &paths[i]);
		guard_place_of(g, &paths[i], &sides[i].place);
	}
	return scan_dir(&s, dir, name, sides, 0);
}
