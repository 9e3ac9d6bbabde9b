/* SPDX-License-Identifier: Apache-2.0 */
/* Renames into place of a file whose content is checked: the guest's file is read once, and a file
 * of our own takes the place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/airlock/claude_settings.h"
#include "lib/rules/airlock/gitconfig.h"

#define RANDOM_BYTES 8

/* The temporary names from which git and claude rename. */
static const struct kind {
	const char *target, *source;
	bool is_prefix;
	size_t max;
} kinds[] = {
	{"config", "config.lock", false, GITCONFIG_MAX_BYTES},
	{"settings.local.json", "settings.local.json.tmp.", true, CLAUDE_SETTINGS_MAX_BYTES},
};

struct text {
	char *p;
	size_t n;
	mode_t mode;
};

static const struct kind *kind_of(const struct guard_call *c)
{
	const char *from = guard_path_name(&c->a), *to = guard_path_name(&c->b);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(to, kinds[i].target) == 0 &&
			(kinds[i].is_prefix ? str_starts(from, kinds[i].source)
					    : strcmp(from, kinds[i].source) == 0))
			return &kinds[i];
	return NULL;
}

static bool are_one_dir(const struct guard_call *c)
{
	struct stat a, b;

	return c->a.n_dir == c->b.n_dir && memcmp(c->a.text, c->b.text, c->a.n_dir) == 0 &&
	       fstat(c->fds[0], &a) == 0 && fstat(c->fds[1], &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int load_text(int dir, const char *name, size_t max, struct text *ret)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	ret->mode = st.st_mode & 0755;
	return fd_load(fd, max, &ret->p, &ret->n);
}

static int check_text(const struct guard_call *c, const struct kind *k, const struct text *old,
	const struct text *new, struct text *ret, struct err *err)
{
	const struct gitconfig_place place = {.path = c->b.rel};

	if (k == &kinds[0])
		return gitconfig_check(
			old->p, old->n, new->p, new->n, &place, &ret->p, &ret->n, err);
	return claude_settings_check(old->p, old->n, new->p, new->n, &ret->p, &ret->n, err);
}

/* The supervisor answers no other call of the guest until this function returns. So the guest
 * cannot open the new file under its temporary name. */
static int put_text(const struct guard_call *c, const struct text *t)
{
	char name[64] = ".sbx-", *random = name + strlen(name);
	int dir = c->fds[1], r;
	AUTO_CLOSE int fd = -1;

	str_random_hex(random, RANDOM_BYTES);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, t->p, t->n);
	if (r == 0 && (fchmod(fd, t->mode) < 0 ||
			      renameat2(dir, name, dir, guard_path_name(&c->b), c->flags) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, name, 0);
	else
		(void)unlinkat(dir, guard_path_name(&c->a), 0);
	return r;
}

static void done_text(struct text *t)
{
	free(t->p);
}

static int try_check(const struct guard_call *c, struct text *ret, struct err *err)
{
	CLEANUP(done_text) struct text old = {0};
	CLEANUP(done_text) struct text new = {0};
	const struct kind *k = kind_of(c);
	int r;

	if (!k || !are_one_dir(c))
		return -EACCES;
	r = load_text(c->fds[1], guard_path_name(&c->b), k->max, &old);
	if (r < 0 && r != -ENOENT)
		return r;
	r = load_text(c->fds[0], guard_path_name(&c->a), k->max, &new);
	if (r == 0)
		r = check_text(c, k, &old, &new, ret, err);
	ret->mode = old.mode ? old.mode : new.mode;
	return r;
}

int guard_check_write(struct guard *g, const struct guard_call *c, const struct autorun_match *m)
{
	CLEANUP(done_text) struct text text = {0};
	struct err err = {0};
	int r = try_check(c, &text, &err);

	if (r < 0) {
		guard_tell(g, GUARD_DENIED, DIRTY_RENAME, m->row->kind, &c->b, err.text);
		return -EACCES;
	}
	r = guard_note_checked(g, &c->b, m);
	if (r == 0)
		r = put_text(c, &text);
	if (r == 0)
		guard_tell(g, GUARD_CHECKED, DIRTY_RENAME, m->row->kind, &c->b, NULL);
	return r;
}
