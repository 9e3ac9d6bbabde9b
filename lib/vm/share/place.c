/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/fs/walk.h"

/* Directories of the home that hold keys, tokens or programs that run at the next login. */
static const char *const private_dirs[] = {
	".ssh", ".gnupg", ".aws", ".kube", ".config", ".local", ".docker"};

bool place_is_in(const char *path, const char *dir)
{
	return walk_is_in(path, dir);
}

int place_resolve(const char *path, char **ret_real, struct err *err)
{
	char *real = realpath(path, NULL);

	if (!real)
		return err_errno(err, -errno, "workspace '%s'", path);
	*ret_real = real;
	return 0;
}

/* ---- opening ---- */

char *place_find_link(const char *path)
{
	char *part = xstrdup(path);

	for (size_t n = 1; part[n - 1]; n++) {
		struct stat st;
		char c = part[n];

		if (c != '/' && c != '\0')
			continue;
		part[n] = '\0';
		if (lstat(part, &st) == 0 && S_ISLNK(st.st_mode))
			return part;
		part[n] = c;
		if (c == '\0')
			break;
	}
	return part;
}

int place_open(const char *path, struct err *err)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	int r = fd < 0 ? -errno : fd;

	if (r == -ELOOP) {
		AUTO_FREE char *link = place_find_link(path);

		return err_set(err, r,
			"%s is a symbolic link now and was a directory when the sandbox was created. Remove the link and restore the directory: rm '%s'",
			link, link);
	}
	if (r == -ENOENT)
		return err_set(err, r, "%s does not exist; create it: mkdir -p '%s'", path, path);
	return r < 0 ? err_errno(err, r, "cannot open %s", path) : r;
}

/* ---- what must not be shared ---- */

/* `path` without symbolic links, as far as it exists; takes it over. */
static char *real_or_same(char *path)
{
	for (char *cut = path + strlen(path); cut; cut = memrchr(path, '/', (size_t)(cut - path))) {
		AUTO_FREE char *head = xstrndup(path, (size_t)(cut - path));
		AUTO_FREE char *real = realpath(head[0] ? head : "/", NULL);
		char *whole;

		if (!real)
			continue;
		whole = xasprintf("%s%s", strcmp(real, "/") == 0 ? "" : real, cut);
		free(path);
		return whole;
	}
	return path;
}

void place_own_get(struct place_own *ret)
{
	static const enum paths_root roots[PLACE_N_OWN] = {
		PATHS_STATE, PATHS_DATA, PATHS_CONFIG, PATHS_RUNTIME};

	for (size_t i = 0; i < PLACE_N_OWN; i++)
		ret->dirs[i] = real_or_same(paths_get(roots[i], NULL));
}

void place_own_done(struct place_own *own)
{
	for (size_t i = 0; i < PLACE_N_OWN; i++) {
		free(own->dirs[i]);
		own->dirs[i] = NULL;
	}
}

static int check_own(const char *real, bool force, struct err *err)
{
	CLEANUP(place_own_done) struct place_own own = {0};

	place_own_get(&own);
	for (size_t i = 0; i < PLACE_N_OWN; i++) {
		if (place_is_in(real, own.dirs[i]))
			return err_set(err, -EACCES,
				"refusing to share '%s': the path belongs to sbx (%s), and no sandbox can use it",
				real, own.dirs[i]);
		if (!force && place_is_in(own.dirs[i], real))
			return err_set(err, -EPERM,
				"refusing to share '%s': it contains the sbx directory %s", real,
				own.dirs[i]);
	}
	return 0;
}

static int check_private(const char *real, const char *home, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(private_dirs); i++) {
		AUTO_FREE char *dir = real_or_same(xasprintf("%s/%s", home, private_dirs[i]));

		if (place_is_in(real, dir) || place_is_in(dir, real))
			return err_set(err, -EPERM,
				"refusing to share '%s': your keys, tokens and settings are in %s",
				real, dir);
	}
	return 0;
}

static int check_home(const char *real, const char *home, struct err *err)
{
	AUTO_FREE char *at = home && home[0] ? realpath(home, NULL) : NULL;

	if (!at)
		return 0;
	if (place_is_in(at, real))
		return err_set(err, -EPERM,
			"refusing to share '%s': it contains your keys, mail and settings", real);
	return check_private(real, at, err);
}

int place_check(const char *real, const char *home, bool force, struct err *err)
{
	struct passwd *pw = home ? NULL : getpwuid(getuid());
	int r = check_own(real, true, err);

	if (r < 0 || force)
		return r;
	if (strcmp(real, "/") == 0)
		return err_set(err, -EPERM,
			"refusing to share '/': the sandbox could read and change all your files");
	r = check_home(real, home ? home : getenv("HOME"), err);
	if (r == 0)
		r = check_home(real, pw ? pw->pw_dir : NULL, err);
	return r < 0 ? r : check_own(real, false, err);
}
