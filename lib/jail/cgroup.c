#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fd.h"

#define MAX_CGROUP_FILE 4096

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
		return err_errno(err, -errno, "opening %s", path);
	r = fd_write_all(fd, text, strlen(text));
	return r < 0 ? err_errno(err, r, "writing %s to %s", text, path) : 0;
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
		return err_errno(err, r, "reading %s", self);
	for (char *line = text; line && *line;) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (strncmp(line, "0::/", 4) == 0 && !strstr(line, "/..") &&
			snprintf(buf, size, "%s", line + 3) < (int)size)
			return 0;
		line = end ? end + 1 : NULL;
	}
	return err_set(err, -ENOENT, "this process is in no cgroup v2");
}

static bool is_writable(const char *dir, const char *file)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, file) < (int)sizeof(path) &&
	       access(path, W_OK) == 0;
}

int jail_cgroup_find(const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err)
{
	const char *self = host && host->self ? host->self : "/proc/self/cgroup";
	const char *mount = host && host->mount ? host->mount : "/sys/fs/cgroup";
	char own[PATH_MAX], dir[PATH_MAX], controllers[MAX_CGROUP_FILE];
	int r = own_path(self, own, sizeof(own), err);

	if (r < 0)
		return r;
	if (snprintf(dir, sizeof(dir), "%s%s", mount, strcmp(own, "/") == 0 ? "" : own) >=
		(int)sizeof(dir))
		return err_set(err, -ENAMETOOLONG, "cgroup path %s is too long", own);
	if (read_text(dir, "cgroup.controllers", controllers, sizeof(controllers)) < 0)
		return err_set(err, -ENOENT, "%s is no cgroup v2", dir);
	if (!has_word(controllers, "memory") || !has_word(controllers, "pids"))
		return err_set(err, -ENOENT, "%s has no memory and pids controller", dir);
	if (!is_writable(dir, ".") || !is_writable(dir, "cgroup.procs") ||
		!is_writable(dir, "cgroup.subtree_control"))
		return err_set(err, -ENOENT, "%s is not delegated to this user", dir);
	if (snprintf(buf, size, "%s", dir) >= (int)size)
		return err_set(err, -ENAMETOOLONG, "cgroup path %s is too long", dir);
	return 0;
}

static int make_dir(const char *root, const char *name, char *buf, size_t size, struct err *err)
{
	if (strchr(name, '/') || name[0] == '.' || !name[0])
		return err_set(err, -EINVAL, "'%s' is no name for a cgroup", name);
	if (snprintf(buf, size, "%s/%s", root, name) >= (int)size)
		return err_set(err, -ENAMETOOLONG, "cgroup path %s/%s is too long", root, name);
	if (mkdir(buf, 0755) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "making the cgroup %s", buf);
	return 0;
}

int jail_cgroup_claim(const char *root, const char *leaf, struct err *err)
{
	char dir[PATH_MAX], pid[32];
	int r = make_dir(root, leaf, dir, sizeof(dir), err);

	if (r < 0)
		return r;
	(void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	r = write_text(dir, "cgroup.procs", pid, err);
	return r < 0 ? r : write_text(root, "cgroup.subtree_control", "+memory +pids", err);
}

static int write_limit(const char *dir, const char *file, uint64_t v, struct err *err)
{
	char text[32] = "max";

	if (v)
		(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	return write_text(dir, file, text, err);
}

int jail_cgroup_limit(const char *dir, uint64_t memory_max, uint64_t pids_max, struct err *err)
{
	int r = memory_max ? write_limit(dir, "memory.max", memory_max, err) : 0;

	if (r == 0 && pids_max)
		r = write_limit(dir, "pids.max", pids_max, err);
	return r;
}

int jail_cgroup_make(const char *root, const char *name, uint64_t memory_max, uint64_t pids_max,
	char *buf, size_t size, struct err *err)
{
	int r = make_dir(root, name, buf, size, err);

	if (r == 0)
		r = write_limit(buf, "memory.max", memory_max, err);
	if (r == 0)
		r = write_limit(buf, "pids.max", pids_max, err);
	return r;
}

void jail_cgroup_remove(const char *dir)
{
	(void)rmdir(dir);
}

void jail_cgroup_status(const struct jail_cgroup_host *host, char *buf, size_t size)
{
	char dir[PATH_MAX];
	struct err err = {0};
	int r = jail_cgroup_find(host, dir, sizeof(dir), &err);

	if (r == 0)
		(void)snprintf(buf, size, "cgroup: %s", dir);
	else
		(void)snprintf(buf, size,
			"cgroup: no limits on memory and processes: %s; start sbxd as a systemd "
			"user unit with Delegate=yes",
			err_text(&err, r));
}
