/* SPDX-License-Identifier: Apache-2.0 */
#include "remote_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "git.h"

void remote_list_done(struct remote_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->name[i]);
		free(l->url[i]);
	}
}

/* The user of ssh is a part of the address; a user of https may be a token. */
static char *without_user(const char *url, const char *host)
{
	size_t n = strcspn(host, "/");
	const char *at = memchr(host, '@', n);

	return at ? xasprintf("%.*s%s", (int)(host - url), url, at + 1) : xstrdup(url);
}

/* The URL as the clone may have it; NULL: none. */
static char *clean_url(const char *url)
{
	static const char *const schemes[] = {"https://", "http://", "ssh://", "git://"};
	const char *colon = strchr(url, ':');

	if (!str_is_printable(url) || url[0] == '-' || strlen(url) > 1000)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (str_starts(url, schemes[i])) {
			const char *host = url + strlen(schemes[i]);

			if (host[0] == '-' || host[0] == '\0')
				return NULL;
			return i < 2 ? without_user(url, host) : xstrdup(url);
		}
	/* user@host:path of ssh; "ext::" and paths of this host are not for the clone */
	if (colon && colon[1] != ':' && colon[1] != '/' && colon > url &&
		memchr(url, '@', (size_t)(colon - url)) && !memchr(url, '/', (size_t)(colon - url)))
		return xstrdup(url);
	return NULL;
}

static void add_remote(struct remote_list *l, const char *name, const char *url)
{
	char *clean =
		str_starts(name, "sandbox-") || !str_is_printable(name) ? NULL : clean_url(url);

	for (size_t i = 0; i < l->n; i++)
		if (clean && strcmp(l->name[i], name) == 0)
			free(TAKE(clean)); /* a second URL is for pushes */
	if (!clean)
		return;
	if (l->n == REMOTE_MAX) {
		free(clean);
		return;
	}
	l->name[l->n] = xstrdup(name);
	l->url[l->n++] = clean;
}

/* "remote.NAME.url URL", one a line. */
void remote_list_read(const struct repo *repo, struct remote_list *ret)
{
	static const char *const args[] = {"config", "--get-regexp", "^remote\\..*\\.url$", NULL};
	AUTO_FREE char *list = git_line(NULL, repo->git_dir, args);

	for (char *s = list ? strtok(list, "\n") : NULL; s; s = strtok(NULL, "\n")) {
		char *end = strstr(s, ".url "), *name = s + strlen("remote.");

		if (!end || end <= name)
			continue;
		*end = '\0';
		add_remote(ret, name, end + strlen(".url "));
	}
}

static char *read_key(const struct repo *repo, const char *branch, const char *key)
{
	AUTO_FREE char *whole = xasprintf("branch.%s.%s", branch, key);
	const char *args[] = {"config", "--get", whole, NULL};

	return git_line(NULL, repo->git_dir, args);
}

void remote_tracking(const struct repo *repo, const char *branch, const struct remote_list *l,
	char **ret_remote, char **ret_merge)
{
	AUTO_FREE char *remote = read_key(repo, branch, "remote");

	for (size_t i = 0; remote && i < l->n; i++)
		if (strcmp(l->name[i], remote) == 0) {
			*ret_merge = read_key(repo, branch, "merge");
			*ret_remote = TAKE(remote);
			return;
		}
}

static int set_key(const struct repo *repo, const char *remote, const char *key, const char *value,
	struct problem *p)
{
	AUTO_FREE char *whole = xasprintf("remote.%s.%s", remote, key);
	const char *args[] = {"config", "--local", "--replace-all", whole, value, NULL};
	struct git_run g = {.git_dir = repo->git_dir, .args = args};
	int r = git_must(&g, "cannot add the remote", &p->err);

	free(g.out);
	return r;
}

int remote_add(const struct repo *repo, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *remote = xasprintf("sandbox-%s", sandbox),
		       *url = xasprintf("sbx::%s", sandbox),
		       *fetch = xasprintf("+refs/heads/*:refs/remotes/%s/*", remote);
	int r = set_key(repo, remote, "url", url, p);

	if (r == 0)
		r = set_key(repo, remote, "fetch", fetch, p);
	return r == 0 ? set_key(repo, remote, "tagOpt", "--no-tags", p) : r;
}

int remote_remove(const struct repo *repo, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *url = xasprintf("remote.sandbox-%s.url", sandbox),
		       *section = xasprintf("remote.sandbox-%s", sandbox);
	const char *get[] = {"config", "--local", "--get", url, NULL};
	const char *args[] = {"config", "--local", "--remove-section", section, NULL};
	AUTO_FREE char *there = git_line(NULL, repo->git_dir, get);
	struct git_run g = {.git_dir = repo->git_dir, .args = args};
	int r = there ? git_must(&g, "cannot remove the remote", &p->err) : 0;

	free(g.out);
	return r;
}
