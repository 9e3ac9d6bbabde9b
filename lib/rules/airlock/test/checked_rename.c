/* SPDX-License-Identifier: Apache-2.0 */
/* For a test: a library that git loads before libc. Its rename does what the supervisor of a share
 * does with the guest's: a rename onto a `config` is answered by gitconfig_check. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/airlock/gitconfig.h"

static int load_text(const char *path, char **ret, size_t *ret_n)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_load(fd, GITCONFIG_MAX_BYTES, ret, ret_n);
}

static int save_text(const char *path, const char *text, size_t n)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : fd_write_all(fd, text, n);
}

/* The path of a file below SBX_TEST_ROOT. */
static const char *path_below(const char *path, char *buf)
{
	const char *root = getenv("SBX_TEST_ROOT"), *slash = strrchr(path, '/');
	AUTO_FREE char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");

	if (!root || !realpath(dir, buf) || !str_starts(buf, root))
		return NULL;
	(void)strcat(buf, "/config");
	return buf + strlen(root) + 1;
}

static int answer_rename(const char *from, const char *to, const char *below)
{
	struct gitconfig_place place = {.path = below};
	AUTO_FREE char *old = NULL, *new = NULL, *text = NULL;
	size_t n_old = 0, n_new = 0, n = 0;
	struct err err = {0};
	int r = load_text(to, &old, &n_old);

	if (r < 0 && r != -ENOENT)
		return r;
	r = load_text(from, &new, &n_new);
	if (r == 0)
		r = gitconfig_check(old, n_old, new, n_new, &place, &text, &n, &err);
	(void)fprintf(stderr, "checked %s: %s\n", below, r < 0 ? err.text : "ok");
	if (r == 0)
		r = save_text(to, text, n);
	return r < 0 ? r : unlink(from);
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *, const char *) =
		(int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
	const char *name = strrchr(to, '/'), *below = NULL;
	char buf[PATH_MAX + 16];
	int r;

	if (!strcmp(name ? name + 1 : to, "config"))
		below = path_below(to, buf);
	if (!below)
		return real(from, to);
	r = answer_rename(from, to, below);
	errno = r < 0 ? EACCES : errno;
	return r < 0 ? -1 : 0;
}
