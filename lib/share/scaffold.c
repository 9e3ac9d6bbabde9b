#include "scaffold.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/mem.h"
#include "lib/jail/tree.h"

/* ---- guest paths ---- */

/* Places of the guest that a workspace must not replace: the folder itself, or all below it. */
static const struct forbidden {
	const char *path;
	bool below;
} forbidden[] = {
	{"/bin", true},
	{"/boot", true},
	{"/dev", true},
	{"/etc", true},
	{"/home", false},
	{"/home/agent", false},
	{"/lib", true},
	{"/lib32", true},
	{"/lib64", true},
	{"/libx32", true},
	{"/proc", true},
	{"/root", false},
	{"/run", true},
	{"/sbin", true},
	{"/sys", true},
	{"/tmp", false},
	{"/usr", true},
	{"/var", false},
	{"/var/lib", false},
	{"/var/lib/docker", true},
	{"/var/lib/containerd", true},
	{"/var/run", true},
	{"/var/tmp", false},
};

/* Parts of them where people do keep work. */
static const char *const permitted[] = {"/run/media/", "/usr/local/src/", "/usr/src/"};

static bool is_normal(const char *path)
{
	const char *p = path;

	if (*p != '/')
		return false;
	while (*p == '/') {
		size_t n = strcspn(++p, "/");

		if (n == 0 || n > NAME_MAX || (n == 1 && *p == '.') ||
			(n == 2 && !memcmp(p, "..", 2)))
			return false;
		p += n;
	}
	return true;
}

static bool is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int scaffold_check_guest(const char *guest, struct err *err)
{
	if (strcmp(guest, "/") == 0)
		return err_set(err, -EINVAL,
			"a workspace cannot replace / of the sandbox; give it a place: HOST:/work");
	if (!is_normal(guest) || strlen(guest) >= PATH_MAX)
		return err_set(err, -EINVAL,
			"'%s' is no place in the sandbox; give an absolute path without . and ..",
			guest);
	for (size_t i = 0; i < ARRAY_LEN(permitted); i++)
		if (strncmp(guest, permitted[i], strlen(permitted[i])) == 0)
			return 0;
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
		const struct forbidden *f = &forbidden[i];

		if (strcmp(guest, f->path) == 0 || (f->below && is_in(guest, f->path)))
			return err_set(err, -EINVAL,
				"a workspace at %s would cover the sandbox's own %s; give it "
				"another "
				"place: HOST:/work",
				guest, f->path);
	}
	return 0;
}

/* ---- host paths ---- */

static int open_path(const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* The path of what was opened, as the kernel has it. */
static int path_of(int fd, char *buf, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, size - 1);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size - 1 || buf[0] != '/')
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return 0;
}

static int check_home(const struct share_config *cfg, const char *host, struct err *err)
{
	const char *home = cfg->home ? cfg->home : getenv("HOME");
	AUTO_FREE char *real = home && *home ? realpath(home, NULL) : NULL;

	if (cfg->force)
		return 0;
	if (strcmp(host, "/") == 0)
		return err_set(err, -EPERM,
			"/ is the whole host; share a project folder, or repeat with --force");
	if (real && is_in(real, host))
		return err_set(err, -EPERM,
			"%s %s your home, with keys and tokens in it; share a project folder, or "
			"repeat with --force",
			host, strcmp(real, host) == 0 ? "is" : "contains");
	return 0;
}

static int check_kind(const char *host, mode_t mode, struct err *err)
{
	if (S_ISDIR(mode) || S_ISREG(mode))
		return 0;
	return err_set(err, -EINVAL,
		"%s is a %s; only folders and regular files can be shared, give one of those", host,
		S_ISSOCK(mode)	 ? "socket"
		: S_ISFIFO(mode) ? "pipe"
				 : "device");
}

static int pin_one(const struct share_config *cfg, const struct share_mount *m,
	struct scaffold_pin *pin, struct err *err)
{
	char real[PATH_MAX];
	struct stat st;
	int r;

	if (m->host[0] != '/')
		return err_set(err, -EINVAL, "'%s' is not an absolute path", m->host);
	pin->fd = open_path(m->host, RESOLVE_NO_MAGICLINKS);
	if (pin->fd == -ENOENT)
		return err_set(err, -ENOENT, "%s does not exist; make it first: mkdir -p '%s'",
			m->host, m->host);
	if (pin->fd < 0 || fstat(pin->fd, &st) < 0)
		return err_errno(err, pin->fd < 0 ? pin->fd : -errno, "opening %s", m->host);
	r = path_of(pin->fd, real, sizeof(real));
	if (r < 0)
		return err_errno(err, r, "finding the path of %s", m->host);
	r = check_kind(m->host, st.st_mode, err);
	if (r == 0)
		r = check_home(cfg, real, err);
	if (r == 0)
		r = scaffold_check_guest(m->guest ? m->guest : m->host, err);
	pin->host = xstrdup(real);
	pin->guest = xstrdup(m->guest ? m->guest : m->host);
	pin->ro = m->ro;
	pin->dir = S_ISDIR(st.st_mode);
	pin->dev = st.st_dev;
	pin->ino = st.st_ino;
	return r;
}

static size_t depth_of(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static int compare_depth(const void *a, const void *b)
{
	const struct scaffold_pin *x = a, *y = b;
	size_t dx = depth_of(x->guest), dy = depth_of(y->guest);

	return dx != dy ? (dx < dy ? -1 : 1) : strcmp(x->guest, y->guest);
}

/* After sorting: the same place twice, or something inside a single file. */
static int check_places(const struct scaffold *s, struct err *err)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct scaffold_pin *a = &s->pins[k], *b = &s->pins[i];

			if (strcmp(a->guest, b->guest) == 0)
				return err_set(err, -EEXIST,
					"%s and %s would both be at %s; give one another place: "
					"HOST:GUEST",
					a->host, b->host, a->guest);
			if (!a->dir && is_in(b->guest, a->guest))
				return err_set(err, -ENOTDIR,
					"%s cannot lie in %s, which is a single file", b->guest,
					a->guest);
		}
	return 0;
}

int scaffold_pin(const struct share_config *cfg, struct scaffold *ret_s, struct err *err)
{
	CLEANUP(scaffold_done) struct scaffold s = {0};
	int r;

	if (cfg->n_mounts > SHARE_MAX_MOUNTS)
		return err_set(err, -E2BIG, "more than %d workspaces; share a folder above",
			SHARE_MAX_MOUNTS);
	for (; s.n < cfg->n_mounts; s.n++)
		s.pins[s.n].fd = -1;
	for (size_t i = 0; i < s.n; i++) {
		r = pin_one(cfg, &cfg->mounts[i], &s.pins[i], err);
		if (r < 0)
			return r;
	}
	qsort(s.pins, s.n, sizeof(s.pins[0]), compare_depth);
	r = check_places(&s, err);
	if (r < 0)
		return r;
	*ret_s = s;
	s.n = 0;
	return 0;
}

void scaffold_done(struct scaffold *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->pins[i].fd >= 0)
			fd_close(&s->pins[i].fd);
		free(s->pins[i].host);
		free(s->pins[i].guest);
	}
	s->n = 0;
}

/* ---- in the child ---- */

static int bind_pin(const struct scaffold_pin *pin, int source, struct err *err)
{
	AUTO_CLOSE int tree = -1;
	AUTO_CLOSE int place = -1;
	AUTO_CLOSE int fd = open(pin->host, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "opening %s", pin->host);
	if (st.st_dev != pin->dev || st.st_ino != pin->ino)
		return err_set(err, -ESTALE, "%s was replaced while it was being shared; try again",
			pin->host);
	r = tree_clone(fd, pin->ro ? 0 : TREE_RW, &tree);
	if (r < 0)
		return err_errno(err, r, "binding %s", pin->host);
	r = tree_place(source, pin->guest, pin->dir, 0555, &place, err);
	if (r == -ENOENT)
		return err_set(err, r,
			"%s lies in another workspace and does not exist there; make it first",
			pin->guest);
	if (r < 0)
		return r;
	r = tree_attach(tree, place);
	return r < 0 ? err_errno(err, r, "binding %s at %s", pin->host, pin->guest) : 0;
}

int scaffold_build(const struct scaffold *s, int new_root, struct err *err)
{
	AUTO_CLOSE int source = -1;
	AUTO_CLOSE int place = -1;
	int r = tree_place(new_root, SCAFFOLD_SOURCE, true, 0555, &place, err);

	if (r < 0)
		return r;
	r = tree_tmpfs("4M", "0555", &source);
	if (r == 0)
		r = tree_attach(source, place);
	if (r < 0)
		return err_errno(err, r, "mounting the stubs");
	for (size_t i = 0; i < s->n; i++) {
		r = bind_pin(&s->pins[i], source, err);
		if (r < 0)
			return r;
	}
	r = tree_set_readonly(source);
	return r < 0 ? err_errno(err, r, "making the stubs read-only") : 0;
}
