/* SPDX-License-Identifier: Apache-2.0 */
#include "scaffold.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hold.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/jail/tree.h"

/* ---- guest paths ---- */

/* Places of the guest that a workspace must not replace: the directory itself, or all below it. */
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

/* Whether a workspace can be at this absolute path of the guest. */
static int check_guest(const char *guest, struct err *err)
{
	if (strcmp(guest, "/") == 0)
		return err_set(err, -EINVAL,
			"a workspace cannot replace / of the sandbox: use another guest path, such as HOST:/work");
	if (!is_normal(guest) || strlen(guest) >= PATH_MAX)
		return err_set(err, -EINVAL,
			"invalid guest path '%s': use an absolute path without . and ..", guest);
	for (size_t i = 0; i < ARRAY_LEN(permitted); i++)
		if (strncmp(guest, permitted[i], strlen(permitted[i])) == 0)
			return 0;
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
		const struct forbidden *f = &forbidden[i];

		if (strcmp(guest, f->path) == 0 || (f->below && place_is_in(guest, f->path)))
			return err_set(err, -EINVAL,
				"a workspace at %s would hide %s of the sandbox: use another guest path, such as HOST:/work",
				guest, f->path);
	}
	return 0;
}

/* ---- host paths ---- */

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

/* The history of an agent is in sbx's state directory and is shared anyway. */
static bool is_history(const struct share_mount *m, const char *real)
{
	AUTO_FREE char *history = paths_get(PATHS_STATE, "history");
	AUTO_FREE char *at = realpath(history, NULL);

	return m->own && at && place_is_in(real, at) && strcmp(real, at) != 0;
}

static int check_kind(const char *host, mode_t mode, struct err *err)
{
	if (S_ISDIR(mode) || S_ISREG(mode))
		return 0;
	return err_set(err, -EINVAL,
		"cannot share %s: it is a %s, not a directory or a regular file", host,
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
	pin->fd = place_open(m->host, err);
	if (pin->fd < 0)
		return pin->fd;
	if (fstat(pin->fd, &st) < 0)
		return err_errno(err, -errno, "cannot read the attributes of %s", m->host);
	r = path_of(pin->fd, real, sizeof(real));
	if (r < 0)
		return err_errno(err, r, "cannot find the path of %s", m->host);
	r = check_kind(m->host, st.st_mode, err);
	if (r == 0 && !is_history(m, real))
		r = place_check(real, cfg->home, cfg->force, err);
	if (r == 0)
		r = check_guest(m->guest ? m->guest : m->host, err);
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
					"%s and %s have the same guest path %s: use another path for one of them, HOST:GUEST",
					a->host, b->host, a->guest);
			if (!a->dir && place_is_in(b->guest, a->guest))
				return err_set(err, -ENOTDIR,
					"%s cannot be inside %s, which is a file", b->guest,
					a->guest);
		}
	return 0;
}

/* The workspace whose guest path is the closest above `guest`, or is it; NULL: none. `n` of
 * them. */
static const struct scaffold_pin *pin_around(const struct scaffold *s, size_t n, const char *guest)
{
	const struct scaffold_pin *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct scaffold_pin *p = &s->pins[i];

		if (place_is_in(guest, p->guest) &&
			(!best || strlen(p->guest) > strlen(best->guest)))
			best = p;
	}
	return best;
}

/* Where the guest sees the host path `path`, which is in the workspace `p`. */
static char *guest_path_of(const struct scaffold_pin *p, const char *path)
{
	return xasprintf(
		"%s%s", p->guest, path + (strcmp(p->host, "/") == 0 ? 0 : strlen(p->host)));
}

/* A read-only workspace that can be written at another place is not read-only. */
static int check_writable_twice(const struct scaffold *s, struct err *err)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->n; k++) {
			const struct scaffold_pin *in = &s->pins[i], *out = &s->pins[k];
			AUTO_FREE char *there = NULL;

			if (i == k || !in->ro || out->ro || !place_is_in(in->host, out->host))
				continue;
			there = guest_path_of(out, in->host);
			if (strcmp(there, in->guest) != 0 && pin_around(s, s->n, there) == out)
				return err_set(err, -EINVAL,
					"%s is shared read-only at %s, but the sandbox can change it at %s: share it only once, as %s:%s:ro",
					in->host, in->guest, there, in->host, there);
		}
	return 0;
}

/* Covers `own` where it is seen through the workspace `p`. */
static int add_cover(struct scaffold *s, const struct scaffold_pin *p, size_t n_pins,
	const char *own, struct err *err)
{
	AUTO_FREE char *guest = guest_path_of(p, own);

	if (pin_around(s, n_pins, guest) != p)
		return 0; /* another workspace is over it */
	s->pins[s->n++] = (struct scaffold_pin){.fd = -1,
		.host = xstrdup(own),
		.guest = TAKE(guest),
		.ro = true,
		.dir = true,
		.cover = true};
	/* one that does not exist now could appear later */
	return paths_make(own, err);
}

static int add_covers(struct scaffold *s, struct err *err)
{
	CLEANUP(place_own_done) struct place_own own = {0};
	size_t n_pins = s->n;
	int r = 0;

	place_own_get(&own);
	for (size_t i = 0; i < n_pins; i++)
		for (size_t k = 0; r == 0 && k < PLACE_N_OWN; k++) {
			const struct scaffold_pin *p = &s->pins[i];

			if (place_is_in(own.dirs[k], p->host) && strcmp(own.dirs[k], p->host) != 0)
				r = add_cover(s, p, n_pins, own.dirs[k], err);
		}
	return r;
}

int scaffold_pin(const struct share_config *cfg, struct scaffold *ret_s, struct err *err)
{
	CLEANUP(scaffold_done) struct scaffold s = {0};
	int r;

	if (cfg->n_mounts > SHARE_MAX_MOUNTS)
		return err_set(err, -E2BIG, "more than %d workspaces: share a parent directory",
			SHARE_MAX_MOUNTS);
	for (; s.n < cfg->n_mounts; s.n++)
		s.pins[s.n].fd = -1;
	for (size_t i = 0; i < s.n; i++) {
		r = pin_one(cfg, &cfg->mounts[i], &s.pins[i], err);
		if (r < 0)
			return r;
	}
	r = add_covers(&s, err);
	if (r < 0)
		return r;
	qsort(s.pins, s.n, sizeof(s.pins[0]), compare_depth);
	r = check_places(&s, err);
	if (r == 0)
		r = check_writable_twice(&s, err);
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

static int open_pin(const struct scaffold_pin *pin, int *ret_tree, struct err *err)
{
	AUTO_CLOSE int fd = open(pin->host, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open %s", pin->host);
	if (st.st_dev != pin->dev || st.st_ino != pin->ino)
		return err_set(err, -ESTALE, "%s was replaced while it was being shared: try again",
			pin->host);
	r = tree_clone(fd, pin->ro ? 0 : TREE_RW, ret_tree);
	return r < 0 ? err_errno(err, r, "cannot bind %s", pin->host) : 0;
}

static int make_cover(int *ret_tree, struct err *err)
{
	AUTO_CLOSE int tree = -1;
	int r = tree_tmpfs("4k", "0555", &tree);

	if (r == 0)
		r = tree_set_readonly(tree);
	if (r < 0)
		return err_errno(err, r, "cannot create an empty directory");
	*ret_tree = TAKE_FD(tree);
	return 0;
}

/* `i` is the number of pins that are bound already. */
static int bind_pin(const struct scaffold *s, size_t i, int source, struct err *err)
{
	const struct scaffold_pin *pin = &s->pins[i], *outer = pin_around(s, i, pin->guest);
	AUTO_CLOSE int tree = -1;
	AUTO_CLOSE int place = -1;
	int r = pin->cover ? make_cover(&tree, err) : open_pin(pin, &tree, err);

	if (r < 0)
		return r;
	if (outer && !outer->ro)
		r = hold_above(source, outer->guest, pin->guest, err);
	if (r == 0)
		r = tree_place(source, pin->guest, pin->dir, 0555, &place, err);
	if (r == -ENOENT)
		return err_set(err, r,
			"%s is inside another workspace and does not exist: create it first",
			pin->guest);
	if (r < 0)
		return r;
	r = tree_attach(tree, place);
	return r < 0 ? err_errno(err, r, "cannot bind %s at %s", pin->host, pin->guest) : 0;
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
		return err_errno(err, r, "cannot mount the stubs");
	for (size_t i = 0; i < s->n; i++) {
		r = bind_pin(s, i, source, err);
		if (r < 0)
			return r;
	}
	r = tree_set_readonly(source);
	return r < 0 ? err_errno(err, r, "cannot make the stubs read-only") : 0;
}
