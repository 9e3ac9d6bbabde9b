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
#define MAGIC "~Module signature appended~\n"
/* Before the magic: eight bytes, then the signature's length in network order. */
#define TRAILER (12 + strlen(MAGIC))

struct slice modules_unsigned(struct slice file)
{
	const uint8_t *end;
	size_t n;

	if (file.n < TRAILER)
		return file;
	end = file.p + file.n - strlen(MAGIC);
	if (memcmp(end, MAGIC, strlen(MAGIC)) != 0)
		return file;
	end -= 4;
	n = (size_t)end[0] << 24 | (size_t)end[1] << 16 | (size_t)end[2] << 8 | end[3];
	return n > file.n - TRAILER ? file : slice_of(file.p, file.n - TRAILER - n);
}

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

/* Whether the path at the start of the line is a module of that name. */
static bool is_module(const char *line, size_t n, const char *name)
{
	const char *base = memrchr(line, '/', n);
	size_t k = strlen(name);

	base = base ? base + 1 : line;
	return (size_t)(line + n - base) > k && !memcmp(base, name, k) &&
	       !strncmp(base + k, ".ko", 3);
}

char *modules_find_dep(const char *dep, const char *name)
{
	for (const char *p = dep; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t n = strcspn(p, ":\n");

		if (p[n] == ':' && is_module(p, n, name))
			return xstrndup(p, strcspn(p, "\n"));
	}
	return NULL;
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
