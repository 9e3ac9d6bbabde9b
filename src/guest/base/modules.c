/* SPDX-License-Identifier: Apache-2.0 */
#include "modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "file.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define FOLDER "/usr/lib/modules"
#define COMPRESSED 4 /* MODULE_INIT_COMPRESSED_FILE */

static int load_bytes(struct slice s, const char *params)
{
	return syscall(SYS_init_module, s.p, s.n, params) < 0 && errno != EEXIST ? -errno : 0;
}

static int load_plain(int fd, const char *params)
{
	struct stat st;
	struct slice all;
	void *p;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	all = slice_of(p, (size_t)st.st_size);
	r = load_bytes(modules_unsigned(all), params);
	if (r == -EKEYREJECTED || r == -EPERM)
		r = load_bytes(all, params);
	(void)munmap(p, (size_t)st.st_size);
	return r;
}

int modules_load_file(const char *path, const char *params, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open the module %s", path);
	if (str_ends(path, ".ko"))
		r = load_plain(fd, params);
	else
		r = syscall(SYS_finit_module, fd, params, COMPRESSED) < 0 && errno != EEXIST
			    ? -errno
			    : 0;
	return r < 0 ? err_errno(err, r, "cannot load the module %s", path) : 0;
}

/* Modules loaded in one call, as paths below the directory. */
struct loaded {
	char *paths[MODULES_MAX];
	size_t n;
};

static void loaded_done(struct loaded *l)
{
	while (l->n > 0)
		free(l->paths[--l->n]);
}

static int load_once(
	const char *folder, const char *path, const char *params, struct loaded *l, struct err *err)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", folder, path);
	int r;

	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->paths[i], path))
			return 0;
	if (l->n == MODULES_MAX)
		return err_set(err, -E2BIG, "too many modules");
	r = modules_load_file(whole, params, err);
	if (r == 0)
		l->paths[l->n++] = xstrdup(path);
	return r;
}

/* From the end: modules.dep lists dependencies last. Modifies the line. */
static int load_line(
	const char *folder, char *line, const char *params, struct loaded *l, struct err *err)
{
	char *colon = strchr(line, ':');
	char *space;
	int r = 0;

	while (r == 0 && (space = strrchr(colon, ' '))) {
		if (space[1])
			r = load_once(folder, space + 1, "", l, err);
		*space = '\0';
	}
	*colon = '\0';
	return r < 0 ? r : load_once(folder, line, params, l, err);
}

int modules_load(const char *const *names, struct err *err)
{
	CLEANUP(loaded_done) struct loaded loaded = {0};
	AUTO_FREE char *folder = NULL, *path = NULL, *dep = NULL;
	struct utsname u;
	int r;

	if (uname(&u) < 0)
		return err_errno(err, -errno, "cannot read the kernel version");
	folder = xasprintf(FOLDER "/%s", u.release);
	path = xasprintf("%s/modules.dep", folder);
	r = file_read(path, &dep);
	if (r < 0)
		return err_errno(err, r, "cannot read %s", path);
	for (; *names && r == 0; names++) {
		size_t n = strcspn(*names, " ");
		AUTO_FREE char *name = xstrndup(*names, n);
		AUTO_FREE char *line = modules_find_dep(dep, name);

		if (line)
			r = load_line(folder, line, *names + n, &loaded, err);
	}
	return r;
}
