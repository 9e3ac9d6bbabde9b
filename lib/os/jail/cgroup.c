/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"

#define MAX_CGROUP_FILE 4096
#define GROUP_PREFIX "sbx-"
#define MAX_DEPTH 32 /* of the own group below the mount */

static int read_text(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s%s%s", dir, *file ? "/" : "", file) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = fd_read_full(fd, buf, size - 1);
	if (n < 0)
		return (int)n;
	buf[n] = '\0';
	return 0;
}

static int write_text(const char *dir, const char *file, const char *text, struct err *err)
{
	char path[PATH_MAX];
	AUTO_CLOSE int fd = -1;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return err_set(err, -ENAMETOOLONG, "cgroup path %s is too long", dir);
	fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	r = fd_write_all(fd, text, strlen(text));
	return r < 0 ? err_errno(err, r, "cannot write %s to %s", text, path) : 0;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; *p; p += strspn(p, " \n")) {
		size_t k = strcspn(p, " \n");

		if (k == n && memcmp(p, word, n) == 0)
			return true;
		p += k;
	}
	return false;
}

/* The v2 line is "0::/path"; a path through ".." would lead out of the mount. */
static int own_path(const char *self, char *buf, size_t size, struct err *err)
{
	char text[MAX_CGROUP_FILE];
	int r = read_text(self, "", text, sizeof(text));

	if (r < 0)
		return err_errno(err, r, "cannot read %s", self);
	for (char *line = text; line && *line;) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (strncmp(line, "0::/", 4) == 0 && !strstr(line, "/..") &&
			snprintf(buf, size, "%s", line + 3) < (int)size)
			return 0;
		line = end ? end + 1 : NULL;
	}
	return err_set(err, -ENOENT, "the process is not in a cgroup v2");
}

static bool is_writable(const char *dir, const char *file)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, file) < (int)sizeof(path) &&
	       access(path, W_OK) == 0;
}

static const char *mount_of(const struct jail_cgroup_host *host)
{
	return host && host->mount ? host->mount : "/sys/fs/cgroup";
}

static int own_dir(const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err)
{
	const char *self = host && host->self ? host->self : "/proc/self/cgroup";
	char own[PATH_MAX];
	int r = own_path(self, own, sizeof(own), err);

	if (r < 0)
		return r;
	if (snprintf(buf, size, "%s%s", mount_of(host), strcmp(own, "/") == 0 ? "" : own) >=
		(int)size)
		return err_set(err, -ENAMETOOLONG, "cgroup path %s is too long", own);
	return 0;
}

static bool is_delegated(const char *dir)
{
	return is_writable(dir, ".") && is_writable(dir, "cgroup.procs") &&
	       is_writable(dir, "cgroup.subtree_control");
}

static bool hands_down(const char *dir)
{
	char list[MAX_CGROUP_FILE];

	return read_text(dir, "cgroup.subtree_control", list, sizeof(list)) == 0 &&
	       has_word(list, "memory") && has_word(list, "pids");
}

int jail_cgroup_find(const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err)
{
	char dir[PATH_MAX], controllers[MAX_CGROUP_FILE];
	int r = own_dir(host, dir, sizeof(dir), err);

	if (r < 0)
		return r;
	if (read_text(dir, "cgroup.controllers", controllers, sizeof(controllers)) < 0)
		return err_set(err, -ENOENT, "%s is not a cgroup v2 hierarchy", dir);
	if (!has_word(controllers, "memory") || !has_word(controllers, "pids"))
		return err_set(err, -ENOENT, "%s has no memory and pids controller", dir);
	if (!is_delegated(dir))
		return err_set(err, -ENOENT, "%s is not delegated to this user", dir);
	if (snprintf(buf, size, "%s", dir) >= (int)size)
		return err_set(err, -ENAMETOOLONG, "cgroup path %s is too long", dir);
	return 0;
}

/* A group with processes hands nothing down, so that is seldom the own one: with systemd it is the
 * slice above, or the unit above the leaf that sbxd has moved to. */
int jail_cgroup_place(const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err)
{
	size_t top = strlen(mount_of(host));
	int r = own_dir(host, buf, size, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < MAX_DEPTH && strlen(buf) > top; i++) {
		if (is_delegated(buf) && hands_down(buf))
			return 0;
		*strrchr(buf, '/') = '\0';
	}
	return err_set(err, -ENOENT, "no cgroup with limits of memory is delegated to this user");
}

static int make_dir(const char *root, const char *name, char *buf, size_t size, struct err *err)
{
	if (strchr(name, '/') || name[0] == '.' || !name[0])
		return err_set(err, -EINVAL, "invalid cgroup name '%s'", name);
	if (snprintf(buf, size, "%s/%s", root, name) >= (int)size)
		return err_set(err, -ENAMETOOLONG, "cgroup path %s/%s is too long", root, name);
	if (mkdir(buf, 0755) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "cannot create the cgroup %s", buf);
	return 0;
}

static int move_here(const char *dir, struct err *err)
{
	char pid[32];

	(void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	return write_text(dir, "cgroup.procs", pid, err);
}

/* Moves this process into `root`/`leaf` and hands memory and pids to the children of `root`. */
static int claim_group(const char *root, const char *leaf, struct err *err)
{
	char dir[PATH_MAX];
	int r = make_dir(root, leaf, dir, sizeof(dir), err);

	if (r == 0)
		r = move_here(dir, err);
	if (r == 0)
		r = write_text(root, "cgroup.subtree_control", "+memory +pids", err);
	if (r == 0)
		(void)!write_text(root, "cgroup.subtree_control", "+cpu", NULL);
	return r;
}

int jail_cgroup_prepare(const struct jail_cgroup_host *host, const char *leaf, struct err *err)
{
	char dir[PATH_MAX];
	int r;

	if (jail_cgroup_place(host, dir, sizeof(dir), NULL) == 0)
		return 0;
	r = jail_cgroup_find(host, dir, sizeof(dir), err);
	return r < 0 ? r : claim_group(dir, leaf, err);
}

static int write_limit(const char *dir, const char *file, uint64_t v, struct err *err)
{
	char text[32] = "max";

	if (v)
		(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	return write_text(dir, file, text, err);
}

/* Makes `root`/`name` with the limits (0: none) and gives its directory. */
static int make_group(const char *root, const char *name, uint64_t memory_max, uint64_t pids_max,
	char *buf, size_t size, struct err *err)
{
	int r = make_dir(root, name, buf, size, err);

	if (r == 0)
		r = write_limit(buf, "memory.max", memory_max, err);
	if (r == 0)
		r = write_limit(buf, "pids.max", pids_max, err);
	return r;
}

int jail_cgroup_enter(const struct jail_cgroup_host *host, const char *id,
	const struct jail_cgroup_limits *limits, struct jail_cgroup *ret, struct err *err)
{
	char root[PATH_MAX], name[64];
	int r = own_dir(host, ret->from, sizeof(ret->from), err);

	if (r == 0)
		r = jail_cgroup_place(host, root, sizeof(root), err);
	if (r == 0 && snprintf(name, sizeof(name), GROUP_PREFIX "%s", id) >= (int)sizeof(name))
		r = err_set(err, -ENAMETOOLONG, "the name of the cgroup is too long");
	if (r == 0)
		r = make_group(root, name, limits->memory_max, limits->pids_max, ret->dir,
			sizeof(ret->dir), err);
	/* No process enters a group without its limits, and no empty group is left. */
	if (r == 0)
		r = move_here(ret->dir, err);
	if (r < 0 && ret->dir[0])
		(void)rmdir(ret->dir);
	if (r < 0)
		ret->dir[0] = '\0';
	return r;
}

void jail_cgroup_leave(struct jail_cgroup *g)
{
	if (!g->dir[0])
		return;
	(void)!move_here(g->from, NULL);
	(void)rmdir(g->dir);
	g->dir[0] = '\0';
}

void jail_cgroup_sweep(const struct jail_cgroup_host *host)
{
	char root[PATH_MAX];
	struct dirent *e;
	AUTO_DIR DIR *d = NULL;

	if (jail_cgroup_place(host, root, sizeof(root), NULL) < 0)
		return;
	d = opendir(root);
	while ((e = dir_next(d)))
		if (strncmp(e->d_name, GROUP_PREFIX, strlen(GROUP_PREFIX)) == 0)
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
}
