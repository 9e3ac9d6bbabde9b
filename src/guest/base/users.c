/* SPDX-License-Identifier: Apache-2.0 */
#include "users.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/slice.h"
#include "lib/base/str.h"

#define MAX_FIELDS 7

/* One line split at its colons. */
struct fields {
	size_t n;
	char text[2048];
	const char *field[MAX_FIELDS];
};

/* Takes the next line from *p; false at the end. An over-long line has no fields. */
static bool next_line(const char **p, struct fields *ret)
{
	size_t n = strcspn(*p, "\n");
	char *s = ret->text;

	ret->n = 0;
	if (**p == '\0')
		return false;
	if (n < sizeof(ret->text)) {
		memcpy(s, *p, n);
		s[n] = '\0';
		while (s && ret->n < MAX_FIELDS) {
			ret->field[ret->n++] = s;
			s = strchr(s, ':');
			if (s)
				*s++ = '\0';
		}
	}
	*p += n + ((*p)[n] == '\n');
	return true;
}

static bool to_id(const char *s, uint32_t *ret)
{
	uint64_t v;

	if (str_to_u64(s, 0, UINT32_MAX - 1, &v) < 0)
		return false;
	*ret = (uint32_t)v;
	return true;
}

bool users_find_group(const char *group, const char *name, gid_t *ret)
{
	struct fields l = {0};

	while (next_line(&group, &l))
		if (l.n >= 3 && !strcmp(l.field[0], name) && to_id(l.field[2], ret))
			return true;
	return false;
}

static bool take_user(const struct fields *l, struct guest_user *ret)
{
	return l->n == 7 && to_id(l->field[2], &ret->uid) && to_id(l->field[3], &ret->gid) &&
	       str_copy(ret->name, sizeof(ret->name), l->field[0]) == 0 &&
	       str_copy(ret->home, sizeof(ret->home), l->field[5]) == 0 &&
	       str_copy(ret->shell, sizeof(ret->shell), l->field[6]) == 0;
}

static bool find_user(const char *passwd, const char *name, struct guest_user *ret)
{
	struct fields l = {0};

	while (next_line(&passwd, &l))
		if (l.n == 7 && !strcmp(l.field[0], name) && take_user(&l, ret))
			return true;
	return false;
}

static bool find_uid(const char *passwd, uid_t uid, struct guest_user *ret)
{
	struct fields l = {0};
	uid_t v;

	while (next_line(&passwd, &l))
		if (l.n == 7 && to_id(l.field[2], &v) && v == uid && take_user(&l, ret))
			return true;
	return false;
}

static bool has_member(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (*list) {
		size_t k = strcspn(list, ",");

		if (k == n && !strncmp(list, name, n))
			return true;
		list += k + (list[k] == ',');
	}
	return false;
}

static void find_memberships(const char *group, struct guest_user *u)
{
	struct fields l = {0};
	gid_t gid;

	while (next_line(&group, &l) && u->n_groups < USERS_MAX_GROUPS)
		if (l.n == 4 && has_member(l.field[3], u->name) && to_id(l.field[2], &gid) &&
			gid != u->gid)
			u->groups[u->n_groups++] = gid;
}

static int find_user_part(
	const char *passwd, const char *who, struct guest_user *ret, struct err *err)
{
	uid_t uid;

	if (find_user(passwd, who, ret))
		return 0;
	if (!to_id(who, &uid))
		return err_set(err, -ENOENT, "user '%s' not found in the sandbox", who);
	if (find_uid(passwd, uid, ret))
		return 0;
	*ret = (struct guest_user){.uid = uid, .gid = uid, .home = "/", .shell = "/bin/sh"};
	return 0;
}

int users_find(const char *passwd, const char *group, const char *spec, struct guest_user *ret,
	struct err *err)
{
	char who[USERS_MAX_FIELD];
	const char *colon = strchr(spec, ':');
	size_t n = colon ? (size_t)(colon - spec) : strlen(spec);
	int r;

	*ret = (struct guest_user){0};
	if (n >= sizeof(who))
		return err_set(err, -ENAMETOOLONG, "the user name is too long");
	snprintf(who, sizeof(who), "%.*s", (int)n, spec);
	r = find_user_part(passwd, n ? who : USERS_AGENT, ret, err);
	if (r < 0)
		return r;
	if (colon && !users_find_group(group, colon + 1, &ret->gid) && !to_id(colon + 1, &ret->gid))
		return err_set(err, -ENOENT, "group '%s' not found in the sandbox", colon + 1);
	/* As docker does: an explicit group is the only one. */
	if (!colon && ret->name[0])
		find_memberships(group, ret);
	return 0;
}

/* The start of the line with the prefix "name:", or NULL. */
static const char *find_entry(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (!strncmp(p, name, n) && p[n] == ':')
			return p;
	return NULL;
}

static const char *skip_fields(const char *p, int n)
{
	while (n > 0 && *p && *p != '\n')
		if (*p++ == ':')
			n--;
	return n == 0 ? p : NULL;
}

/* The text with n_fields fields from `from` on replaced by `by`. */
static char *splice_users(const char *text, const char *from, int n_fields, const char *by)
{
	const char *to = from;

	for (int i = 0; i < n_fields; i++)
		to += strcspn(to, ":\n") + (i + 1 < n_fields);
	return xasprintf("%.*s%s%s", (int)(from - text), text, by, to);
}

char *users_edit_passwd(const char *passwd, const char *name, uid_t uid, gid_t gid)
{
	const char *entry = find_entry(passwd, name);
	const char *ids = entry ? skip_fields(entry, 2) : NULL;
	char by[32];

	if (!ids || !skip_fields(ids, 2))
		return NULL;
	snprintf(by, sizeof(by), "%u:%u", uid, gid);
	return splice_users(passwd, ids, 2, by);
}

char *users_edit_group(const char *group, const char *name, gid_t gid)
{
	const char *entry = find_entry(group, name);
	const char *id = entry ? skip_fields(entry, 2) : NULL;
	char by[16];

	if (!id || !skip_fields(id, 1))
		return NULL;
	snprintf(by, sizeof(by), "%u", gid);
	return splice_users(group, id, 1, by);
}
