/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/fs/walk.h"
#include "lib/vm/share/place.h"

#define NAME_MAX_SANDBOX 63

void workspace_done(struct workspace *w)
{
	free(w->host);
	free(w->guest);
	free(w->typed);
	*w = (struct workspace){0};
}

/* Removes ":ro" or ":rw" from the end even if that file exists: a guest may have created it. */
static void take_mode(char *s, bool *ret_ro)
{
	*ret_ro = str_ends(s, ":ro");
	if (*ret_ro || str_ends(s, ":rw"))
		s[strlen(s) - strlen(":ro")] = '\0';
}

/* The last ":/", which separates HOST from GUEST, or NULL. */
static char *find_guest(char *s)
{
	char *at = strstr(s, ":/");

	for (char *next = at; next; next = strstr(next + 1, ":/"))
		at = next;
	return at;
}

static bool is_plain_absolute(const char *path)
{
	const char *s = path;

	if (s[0] != '/' || !s[1])
		return false;
	while (*s) {
		size_t k = strcspn(++s, "/");

		if (k == 0 || (k == 1 && s[0] == '.') || (k == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s += k;
	}
	return true;
}

static int check_place(const char *host, bool force, struct problem *p)
{
	struct err err = {0};
	int r = place_check(host, NULL, force, &err);

	if (r == 0)
		return 0;
	(void)err_set(&p->err, r, "%s%s", err_text(&err, r),
		r == -EPERM ? "; use --force to share it anyway" : "");
	return problem_hint(p, r, "mkdir -p ~/project && cd ~/project");
}

static int check_host(struct workspace *w, bool force, struct problem *p)
{
	struct stat st;

	if (stat(w->host, &st) < 0)
		return err_errno(&p->err, -errno, "cannot read '%s'", w->host);
	w->file = S_ISREG(st.st_mode);
	if (!w->file && !S_ISDIR(st.st_mode))
		return err_set(
			&p->err, -EINVAL, "'%s' is not a directory or a regular file", w->host);
	if (w->file && !w->ro) {
		(void)err_set(&p->err, -EINVAL,
			"'%s' is a file: files can only be shared read-only", w->host);
		return problem_hint(p, -EINVAL, "sbx create shell '%s:ro'", w->host);
	}
	return check_place(w->host, force, p);
}

static int fail_missing(const char *arg, const char *host, int r, struct problem *p)
{
	const char *colon;
	struct stat st;

	if (strlen(arg) == strlen(host) + strlen(":ro") && lstat(arg, &st) == 0)
		return err_errno(&p->err, r,
			"to share the directory named '%s', use '%s:rw': cannot find workspace '%s'",
			arg, arg, host);
	colon = strrchr(host, ':');
	if (colon) {
		AUTO_FREE char *front = xstrndup(host, (size_t)(colon - host));

		if (lstat(front, &st) == 0) {
			(void)err_set(&p->err, -EINVAL,
				"invalid workspace suffix '%s': expected :ro, :rw or :/GUEST/PATH",
				colon);
			return problem_hint(p, -EINVAL, "sbx create shell '%s:ro'", front);
		}
	}
	r = err_errno(&p->err, r, "cannot find workspace '%s'", host);
	return problem_hint(p, r, "mkdir -p '%s'", host);
}

int workspace_parse(const char *arg, bool force, struct workspace *ret, struct problem *p)
{
	AUTO_FREE char *text = xstrdup(arg);
	CLEANUP(workspace_done) struct workspace w = {0};
	char *guest;
	int r;

	take_mode(text, &w.ro);
	guest = find_guest(text);
	if (guest)
		*guest++ = '\0';
	r = walk_absolute(text[0] ? text : ".", &w.typed, &p->err);
	if (r < 0)
		return r;
	w.host = realpath(text[0] ? text : ".", NULL);
	if (!w.host)
		return fail_missing(arg, text, -errno, p);
	if (guest && !is_plain_absolute(guest))
		return err_set(&p->err, -EINVAL,
			"invalid guest path '%s': expected an absolute path without . and ..",
			guest);
	w.guest = xstrdup(guest ? guest : w.host);
	r = check_host(&w, force, p);
	if (r < 0)
		return r;
	*ret = w;
	w = (struct workspace){0};
	return 0;
}

void workspace_default_name(const char *agent, const char *host, char *buf, size_t size)
{
	const char *base = host ? strrchr(host, '/') + 1 : "";
	size_t n;

	(void)snprintf(buf, MIN(size, (size_t)NAME_MAX_SANDBOX + 1), "%s%s%s", agent,
		base[0] ? "-" : "", base);
	for (char *c = buf; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-')
			*c = '-';
	for (n = strlen(buf); n > 0 && (buf[n - 1] == '-' || buf[n - 1] == '.'); n--)
		buf[n - 1] = '\0';
}

char *workspace_describe(const char *host, const char *guest, bool ro)
{
	bool same = strcmp(host, guest) == 0;

	return xasprintf(
		"%s%s%s (%s)", host, same ? "" : " -> ", same ? "" : guest, ro ? "ro" : "rw");
}
