/* SPDX-License-Identifier: Apache-2.0 */
#include "managed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define WRITABLE (S_IWGRP | S_IWOTH)

static const char *dir_of(const struct managed *m)
{
	return m->dir ? m->dir : MANAGED_DIR;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_uid == b->st_uid && a->st_mode == b->st_mode &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void managed_done(struct managed *m)
{
	rules_done(&m->rules);
	m->fault = (struct err){0};
	m->exists = m->fresh = false;
}

/* Neither the user nor another one may have made or changed it. */
static int check_owner(
	const struct managed *m, const struct stat *st, const char *name, struct err *err)
{
	if (st->st_uid != m->owner)
		return err_set(err, -EPERM, "%s%s belongs to user %u, not to root", dir_of(m), name,
			st->st_uid);
	if (st->st_mode & WRITABLE)
		return err_set(err, -EPERM,
			"%s%s is writable for others than root: sudo chmod go-w %s%s", dir_of(m),
			name, dir_of(m), name);
	return 0;
}

/* -ENOENT: there is no managed policy. */
static int open_managed(const struct managed *m, struct stat *st, struct err *err)
{
	AUTO_CLOSE int dir = open(dir_of(m), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int fd = -1;
	struct stat of_dir;
	int r;

	if (dir < 0 || fstat(dir, &of_dir) < 0)
		return err_errno(err, -errno, "cannot open %s", dir_of(m));
	fd = openat(dir, "policy", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s/policy", dir_of(m));
	if (fstat(fd, st) < 0)
		return err_errno(err, -errno, "cannot read %s/policy", dir_of(m));
	if (!S_ISREG(st->st_mode))
		return err_set(err, -EINVAL, "%s/policy is not a regular file", dir_of(m));
	r = check_owner(m, &of_dir, "", err);
	if (r == 0)
		r = check_owner(m, st, "/policy", err);
	return r < 0 ? r : TAKE_FD(fd);
}

static int read_text(const struct managed *m, char **ret, size_t *ret_n, struct err *err)
{
	struct stat st;
	AUTO_CLOSE int fd = open_managed(m, &st, err);
	AUTO_FREE char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (st.st_size > MANAGED_MAX_BYTES)
		return err_set(err, -E2BIG, "%s/policy has more than %u bytes", dir_of(m),
			MANAGED_MAX_BYTES);
	text = xmalloc((size_t)st.st_size + 1);
	n = fd_read_full(fd, text, (size_t)st.st_size);
	if (n < 0)
		return err_errno(err, (int)n, "cannot read %s/policy", dir_of(m));
	*ret = TAKE(text);
	*ret_n = (size_t)n;
	return 0;
}

/* Names of sandboxes are the user's choice, and a ceiling without a rule that allows is an error
 * that would deny everything. */
static int check_rules(const struct managed *m, const struct rules *rules, struct err *err)
{
	bool allows = false;

	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rule[i];

		if (rule->sandbox)
			return err_set(err, -EINVAL,
				"%s/policy: line %u: a managed rule applies to all sandboxes: remove 'for sandbox %s'",
				dir_of(m), rule->line, rule->sandbox);
		allows = allows || (rule->effect == RULE_ALLOW && rule->kind == RULE_NETWORK);
	}
	return allows ? 0
		      : err_set(err, -EINVAL,
				"%s/policy has no rule 'allow network': to forbid only some hosts, add the line 'allow network **:1-65535'",
				dir_of(m));
}

static int load_managed(struct managed *m, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/policy", dir_of(m)), *text = NULL;
	size_t n = 0;
	int r = read_text(m, &text, &n, err);

	if (r == 0)
		r = rules_decode(slice_of(text, n), path, &m->rules, err);
	return r < 0 ? r : check_rules(m, &m->rules, err);
}

bool managed_refresh(struct managed *m)
{
	AUTO_FREE char *path = xasprintf("%s/policy", dir_of(m));
	struct stat now[2] = {0};
	int r;

	if (lstat(dir_of(m), &now[0]) < 0)
		now[0] = (struct stat){.st_size = errno};
	if (lstat(path, &now[1]) < 0)
		now[1] = (struct stat){.st_size = errno};
	if (m->fresh && is_same(&now[0], &m->seen[0]) && is_same(&now[1], &m->seen[1]))
		return false;
	managed_done(m);
	r = load_managed(m, &m->fault);
	m->exists = r != -ENOENT;
	if (r < 0)
		rules_done(&m->rules);
	if (r == -ENOENT)
		m->fault = (struct err){0};
	memcpy(m->seen, now, sizeof(now));
	m->fresh = true;
	return true;
}
