/* SPDX-License-Identifier: Apache-2.0 */
#include "scan_places.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define RAM_LINK "/memfd:memory-backend" /* its name in QEMU */

static const char *const names[SCAN_N_PLACES] = {
	"ram", "disk", "docker", "logs", "audit", "files", "base"};

struct walk {
	enum scan_place place;
	scan_file_fn *fn;
	void *arg;
	unsigned n;
	struct problem *p;
};

const char *scan_place_name(enum scan_place place)
{
	return names[place];
}

int scan_place_parse(const char *text, unsigned *ret, struct problem *p)
{
	AUTO_FREE char *copy = xstrdup(text);
	char *rest = NULL;

	*ret = 0;
	for (char *w = strtok_r(copy, ",", &rest); w; w = strtok_r(NULL, ",", &rest)) {
		unsigned i = 0;

		while (i < SCAN_N_PLACES && strcmp(w, names[i]) != 0)
			i++;
		if (i == SCAN_N_PLACES)
			return err_set(&p->err, -EINVAL,
				"invalid --what '%s': expected ram, disk, docker, logs, audit, files or base",
				w);
		*ret |= 1U << i;
	}
	return *ret ? 0 : err_set(&p->err, -EINVAL, "--what is empty");
}

/* Only regular files: sockets, pipes and directories are skipped. */
static int give_places(struct walk *w, int dir, const char *name)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENXIO))
		return 0;
	if (fd < 0)
		return err_errno(&w->p->err, -errno, "cannot open %s", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	if (++w->n > SCAN_MAX_FILES)
		return err_set(&w->p->err, -E2BIG, "more than %d files to search", SCAN_MAX_FILES);
	return w->fn(w->arg, w->place, fd, w->p);
}

static bool is_file(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

typedef bool pick_fn(const char *name);

static int each_in(struct walk *w, const char *path, pick_fn *pick)
{
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(&w->p->err, -errno, "cannot read %s", path);
	while (r == 0 && (e = dir_next(dir)))
		if (pick(e->d_name) && is_file(dirfd(dir), e->d_name))
			r = give_places(w, dirfd(dir), e->d_name);
	return r;
}

static bool is_root(const char *name)
{
	return fnmatch("root*.qcow2", name, 0) == 0;
}

static bool is_docker(const char *name)
{
	return fnmatch("docker*.qcow2", name, 0) == 0;
}

static bool is_log(const char *name)
{
	return fnmatch("*.log*", name, 0) == 0;
}

static bool is_any(const char *name)
{
	return true;
}

static bool is_other(const char *name)
{
	return !is_root(name) && !is_docker(name) && !is_log(name);
}

/* The files in its directories too, one level down. */
static int each_below(struct walk *w, const char *path)
{
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;
	int r = each_in(w, path, is_any);

	while (r == 0 && (e = dir_next(dir))) {
		AUTO_FREE char *below = xasprintf("%s/%s", path, e->d_name);
		struct stat st;

		if (e->d_name[0] != '.' &&
			fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(st.st_mode))
			r = each_in(w, below, is_any);
	}
	return r;
}

struct seen {
	dev_t dev;
	ino_t ino;
};

static bool is_new(struct seen *seen, size_t *n, size_t max, const struct stat *st)
{
	for (size_t i = 0; i < *n; i++)
		if (seen[i].dev == st->st_dev && seen[i].ino == st->st_ino)
			return false;
	if (*n < max)
		seen[(*n)++] = (struct seen){st->st_dev, st->st_ino};
	return true;
}

static bool is_wanted(const char *link, const struct stat *st, enum scan_place place)
{
	bool is_memfd = strncmp(link, "/memfd:", 7) == 0;
	/* Memory in the state directory is the only file without a name. */
	bool is_ram = is_memfd ? strncmp(link, RAM_LINK, strlen(RAM_LINK)) == 0 : st->st_nlink == 0;

	if (!S_ISREG(st->st_mode))
		return false;
	return place == SCAN_RAM ? is_ram : !is_ram && !is_memfd;
}

/* The sandbox's own layers are separate places. */
static void note_own(const char *dir_path, struct seen *seen, size_t *n, size_t max)
{
	AUTO_DIR DIR *dir = opendir(dir_path);
	struct dirent *e;
	struct stat st;

	while ((e = dir_next(dir)))
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			(void)is_new(seen, n, max, &st);
}

static int each_open(struct walk *w, long long pid, const char *own)
{
	AUTO_FREE char *path = xasprintf("/proc/%lld/fd", pid);
	AUTO_DIR DIR *dir = pid > 0 ? opendir(path) : NULL;
	struct seen seen[256];
	size_t n_seen = 0;
	struct dirent *e;
	int r = 0;

	if (pid <= 0)
		return err_set(&w->p->err, -ESRCH, "the sandbox is not running: cannot search %s",
			scan_place_name(w->place));
	if (!dir)
		return err_errno(&w->p->err, -errno, "cannot list the open files of the VM");
	note_own(own, seen, &n_seen, ARRAY_LEN(seen));
	while (r == 0 && (e = dir_next(dir))) {
		char link[512] = "";
		struct stat st;

		if (e->d_name[0] == '.' ||
			readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1) <= 0 ||
			fstatat(dirfd(dir), e->d_name, &st, 0) < 0)
			continue;
		if (is_wanted(link, &st, w->place) && is_new(seen, &n_seen, ARRAY_LEN(seen), &st))
			r = give_places(w, dirfd(dir), e->d_name);
	}
	if (r == 0 && w->place == SCAN_RAM && w->n == 0)
		r = err_set(&w->p->err, -ENOENT, "the memory of the VM was not found");
	return r;
}

int scan_place_each(const json_t *sandbox, enum scan_place place, scan_file_fn *fn, void *arg,
	struct problem *p)
{
	const char *id = api_str(sandbox, "id");
	AUTO_FREE char *own = paths_get(PATHS_STATE, "sandboxes/%s", id);
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, "s/%s", id);
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);
	AUTO_FREE char *audit = paths_get(PATHS_STATE, "audit");
	struct walk w = {.place = place, .fn = fn, .arg = arg, .p = p};
	int r;

	switch (place) {
	case SCAN_DISK:
		return each_in(&w, own, is_root);
	case SCAN_DOCKER:
		return each_in(&w, own, is_docker);
	case SCAN_LOGS:
		r = each_in(&w, own, is_log);
		return r < 0 ? r : each_in(&w, state, is_log);
	case SCAN_AUDIT:
		return each_below(&w, audit);
	case SCAN_FILES:
		r = each_in(&w, own, is_other);
		r = r < 0 ? r : each_in(&w, run, is_other);
		return r < 0 ? r : each_in(&w, state, is_other);
	default:
		return each_open(&w, api_int(sandbox, "qemu_pid"), own);
	}
}
