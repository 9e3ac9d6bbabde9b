/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/mem.h"

static const char *home_paths(void)
{
	const char *h = getenv("HOME");
	struct passwd *pw;

	if (h && h[0] == '/')
		return h;
	pw = getpwuid(getuid());
	return pw && pw->pw_dir ? pw->pw_dir : "/";
}

/* A variable is used only if it is an absolute path, as the XDG specification requires. */
static char *from_env(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] == '/' ? xstrdup(v) : NULL;
}

static char *xdg_paths(const char *name, const char *below_home)
{
	AUTO_FREE char *v = from_env(name);

	return v ? xasprintf("%s/sbx", v) : xasprintf("%s/%s/sbx", home_paths(), below_home);
}

static char *runtime_root(void)
{
	AUTO_FREE char *v = from_env("XDG_RUNTIME_DIR");
	AUTO_FREE char *state = NULL;

	if (v)
		return xasprintf("%s/sbx", v);
	state = xdg_paths("XDG_STATE_HOME", ".local/state");
	return xasprintf("%s/run", state);
}

static char *root_path(enum paths_root root)
{
	char *p = NULL;

	switch (root) {
	case PATHS_RUNTIME:
		return runtime_root();
	case PATHS_STATE:
		return xdg_paths("XDG_STATE_HOME", ".local/state");
	case PATHS_DATA:
		return xdg_paths("XDG_DATA_HOME", ".local/share");
	case PATHS_CONFIG:
		return xdg_paths("XDG_CONFIG_HOME", ".config");
	case PATHS_LIBEXEC:
		p = from_env("SBX_LIBEXEC");
		return p ? p : xstrdup(SBX_LIBEXECDIR);
	case PATHS_SHARE:
		p = from_env("SBX_SHARE");
		return p ? p : xstrdup(SBX_SHAREDIR);
	case PATHS_N_ROOTS:
		break;
	}
	abort();
}

char *paths_get(enum paths_root root, const char *fmt, ...)
{
	AUTO_FREE char *base = root_path(root);
	AUTO_FREE char *rest = NULL;
	va_list ap;
	int n;

	if (!fmt)
		return TAKE(base);
	va_start(ap, fmt);
	n = vasprintf(&rest, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	return xasprintf("%s/%s", base, rest);
}

int paths_make(const char *dir, struct err *err)
{
	char buf[PATHS_MAX];
	size_t n = strlen(dir);
	struct stat st;

	if (n >= sizeof(buf))
		return err_set(err, -ENAMETOOLONG, "path too long: %.64s...", dir);
	memcpy(buf, dir, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (buf[i] != '/' && buf[i] != '\0')
			continue;
		buf[i] = '\0';
		if (mkdir(buf, 0700) < 0 && errno != EEXIST)
			return err_errno(err, -errno, "cannot create directory %s", buf);
		if (i < n)
			buf[i] = '/';
	}
	if (stat(dir, &st) < 0)
		return err_errno(err, -errno, "cannot create directory %s", dir);
	return S_ISDIR(st.st_mode) ? 0
				   : err_errno(err, -ENOTDIR, "cannot create directory %s", dir);
}
