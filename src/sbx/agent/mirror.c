/* SPDX-License-Identifier: Apache-2.0 */
#include "mirror.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/client/cli/follow.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define APT_GET "/usr/bin/apt-get"
#define FIND_MS 20000
#define LIST_PREFIX "mirror+file:"

/* A name whose last label cannot be part of an address in any notation. */
static bool is_name(const char *host, size_t n)
{
	size_t last = n;

	while (last > 0 && host[last - 1] != '.')
		last--;
	if (n == 0 || n > 253 || !isalpha((unsigned char)host[last]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)host[i]) && host[i] != '.' && host[i] != '-')
			return false;
	return strncasecmp(host + last, "localhost", n - last) != 0;
}

/* HOST:80 or HOST:443 of a URI; false if it is not a name, or has another port. */
static bool target_of(const char *uri, char *buf, size_t size)
{
	bool tls = str_starts(uri, "https://");
	const char *host = uri + (tls ? 8 : 7), *at, *port = tls ? ":443" : ":80";
	size_t n, end;

	if (!tls && !str_starts(uri, "http://"))
		return false;
	n = strcspn(host, "/?# ");
	at = memrchr(host, '@', n);
	if (at) { /* the password is not used */
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	end = strcspn(host, ":/?# ");
	if (end < n && (n - end != strlen(port) || strncmp(host + end, port, n - end) != 0))
		return false;
	if (!is_name(host, end))
		return false;
	return snprintf(buf, size, "%.*s%s", (int)end, host, port) < (int)size;
}

static void add_target(struct mirrors *m, const char *uri)
{
	char target[MIRROR_MAX_TARGET];

	if (m->n == MIRROR_MAX || !target_of(uri, target, sizeof(target)))
		return;
	for (size_t i = 0; i < m->n; i++)
		if (strcasecmp(m->v[i], target) == 0)
			return;
	(void)snprintf(m->v[m->n++], MIRROR_MAX_TARGET, "%s", target);
}

static void add_list(struct mirrors *m, const char *path)
{
	AUTO_FREE char *text = NULL;
	char *line, *rest;
	size_t n;

	if (file_load(path, MIRROR_MAX_LIST, &text, &n, &(struct err){0}) < 0)
		return;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		line += strspn(line, " \t");
		line[strcspn(line, " \t#\r")] = '\0';
		if (line[0]) {
			add_target(m, line);
			return;
		}
	}
}

void mirror_add(struct mirrors *m, const char *line)
{
	AUTO_FREE char *path = NULL;

	if (!str_starts(line, LIST_PREFIX)) {
		add_target(m, line);
		return;
	}
	path = xstrdup(line + strlen(LIST_PREFIX));
	if (str_ends(path, "/"))
		path[strlen(path) - 1] = '\0';
	add_list(m, path);
}

static void on_line(void *arg, char *line)
{
	mirror_add(arg, line);
}

void mirror_find(struct mirrors *m)
{
	static const char *const argv[] = {APT_GET, "indextargets", "--no-release-info", "--format",
		"$(REPO_URI)", "Created-By: Packages", NULL};
	struct follow f = {
		.argv = argv, .lines = 1, .in_fd = -1, .max_ms = FIND_MS, .fn = on_line, .arg = m};

	if (access(APT_GET, X_OK) == 0)
		(void)!follow_run(&f, &(struct err){0});
}
