/* SPDX-License-Identifier: Apache-2.0 */
#include "park_list.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "src/guest/setup/setup.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define DELETED " (deleted)"
/* Flags for the first open only: creating and truncating must not be repeated. */
#define FLAGS_OF_FIRST (O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY)

void park_list_lose(struct park_list *l, pid_t pid, const char *what, const char *why)
{
	struct park_report *r = &l->lost;
	AUTO_FREE char *path = xasprintf("/proc/%d/comm", pid);
	AUTO_FREE char *comm = NULL;
	size_t n = strlen(r->text);

	r->n++;
	if (file_read(path, &comm) == 0)
		comm[strcspn(comm, "\n")] = '\0';
	(void)snprintf(r->text + n, sizeof(r->text) - n, "%s%s (%d): %s %s", n ? "; " : "",
		comm ? comm : "?", (int)pid, what, why);
}

/* ---- mounts ---- */

/* "\040" and the like. */
static void unescape_list(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static uint64_t attrs_of(const char *options)
{
	static const struct {
		const char *word;
		uint64_t attr;
	} words[] = {{"ro", MOUNT_ATTR_RDONLY}, {"nosuid", MOUNT_ATTR_NOSUID},
		{"nodev", MOUNT_ATTR_NODEV}, {"noexec", MOUNT_ATTR_NOEXEC}};
	uint64_t attrs = 0;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i].word);

		for (const char *p = options; p; p = strchr(p, ',')) {
			p += *p == ',';
			if (!strncmp(p, words[i].word, n) && (p[n] == ',' || p[n] == '\0'))
				attrs |= words[i].attr;
		}
	}
	return attrs;
}

/* 36 35 98:0 /root /place rw,nosuid shared:1 - type source super */
bool park_list_mount(char *line, struct park_mount *ret)
{
	char *type = strstr(line, " - "), *save = NULL, *fields[6] = {NULL};
	unsigned major, minor;

	if (!type || strncmp(type + 3, "virtiofs ", 9) != 0)
		return false;
	*type = '\0';
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (!(fields[i] = strtok_r(i ? NULL : line, " ", &save)))
			return false;
	if (sscanf(fields[2], "%u:%u", &major, &minor) != 2)
		return false;
	unescape_list(fields[3]);
	unescape_list(fields[4]);
	*ret = (struct park_mount){.id = strtoull(fields[0], NULL, 10),
		.dev = makedev(major, minor),
		.root = xstrdup(fields[3]),
		.place = xstrdup(fields[4]),
		.attrs = attrs_of(fields[5])};
	return true;
}

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return !strncmp(path, folder, n) && (path[n] == '/' || path[n] == '\0');
}

int park_list_enter(const struct park_list *l, size_t ns)
{
	if (setns(l->ns[ns].fd, CLONE_NEWNS) < 0)
		return -errno;
	/* PID 1's root is on the initramfs. */
	if (ns == 0 && (fchdir(l->root) < 0 || chroot(".") < 0))
		return -errno;
	return 0;
}

static int read_mounts(struct park_list *l, size_t ns)
{
	int fd = openat(l->proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = xmalloc(PARK_MAX_LINE);

	if (!f)
		fd_close(&fd);
	while (f && l->n_mounts < PARK_MAX_MOUNTS && fgets(line, PARK_MAX_LINE, f)) {
		struct park_mount m;

		line[strcspn(line, "\n")] = '\0';
		if (!park_list_mount(line, &m))
			continue;
		m.ns = ns;
		m.is_base = ns == 0 && is_below(m.place, MOUNTS_SHARE);
		l->mounts = xrealloc(l->mounts, (l->n_mounts + 1) * sizeof(*l->mounts));
		l->mounts[l->n_mounts++] = m;
	}
	if (f)
		(void)fclose(f);
	free(line);
	return f ? 0 : -ENOENT;
}

/* Path in the share where one of its file systems begins; NULL: unknown. */
static const char *base_of(const struct park_list *l, dev_t dev)
{
	for (size_t i = 0; i < l->n_mounts; i++)
		if (l->mounts[i].is_base && l->mounts[i].dev == dev &&
			!strcmp(l->mounts[i].root, "/"))
			return l->mounts[i].place + strlen(MOUNTS_SHARE);
	return NULL;
}

static void make_roots(struct park_list *l)
{
	for (size_t i = 0; i < l->n_mounts; i++) {
		struct park_mount *m = &l->mounts[i];
		const char *base = m->is_base ? NULL : base_of(l, m->dev);
		char *root;

		if (!base)
			continue;
		root = xasprintf("%s%s", base, strcmp(m->root, "/") != 0 ? m->root : "");
		free(m->root);
		m->root = root;
	}
}

/* ---- namespaces ---- */

static void add_ns(struct park_list *l, int fd)
{
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && l->n_ns < PARK_MAX_NS) {
		size_t i = 0;

		while (i < l->n_ns && l->ns[i].ino != st.st_ino)
			i++;
		if (i == l->n_ns) {
			l->ns[l->n_ns++] = (struct park_ns){st.st_ino, fd};
			return;
		}
	}
	fd_close(&fd);
}

static bool is_skipped(const pid_t *skip, pid_t pid)
{
	while (*skip && *skip != pid)
		skip++;
	return *skip != 0;
}

typedef void each_fn(struct park_list *l, pid_t pid);

static void for_each(struct park_list *l, const pid_t *skip, each_fn *fn)
{
	AUTO_DIR DIR *d = opendir("/proc");
	struct dirent *e;
	uint64_t pid;

	while ((e = dir_next(d)))
		if (str_to_u64(e->d_name, 2, INT32_MAX, &pid) == 0 && !is_skipped(skip, (pid_t)pid))
			fn(l, (pid_t)pid);
}

static void add_ns_of(struct park_list *l, pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/ns/mnt", pid);

	add_ns(l, open(path, O_RDONLY | O_CLOEXEC));
}

static int read_all_mounts(struct park_list *l)
{
	int r = read_mounts(l, 0);

	for (size_t i = 1; r == 0 && i < l->n_ns; i++)
		if (park_list_enter(l, i) == 0)
			(void)!read_mounts(l, i);
	if (r == 0 && l->n_ns > 1)
		r = park_list_enter(l, 0);
	make_roots(l);
	return r;
}

/* ---- open files and directories ---- */

static const struct park_mount *find_mount(const struct park_list *l, uint64_t id)
{
	for (size_t i = 0; i < l->n_mounts; i++)
		if (l->mounts[i].id == id)
			return &l->mounts[i];
	return NULL;
}

static bool is_share(const struct park_list *l, dev_t dev)
{
	for (size_t i = 0; i < l->n_mounts; i++)
		if (l->mounts[i].dev == dev)
			return true;
	return false;
}

/* "lock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF" */
static void read_lock(const char *line, struct park_item *ret)
{
	char kind[16], access[16], end[32];
	long long start;
	struct park_lock *lock = &ret->locks[ret->n_locks];

	if (ret->n_locks == PARK_MAX_LOCKS ||
		sscanf(line, "lock: %*d: %15s %*s %15s %*d %*s %lld %31s", kind, access, &start,
			end) != 4)
		return;
	*lock = (struct park_lock){.is_write = !strcmp(access, "WRITE"),
		.start = start,
		.len = strcmp(end, "EOF") != 0 ? strtoll(end, NULL, 10) - start + 1 : 0};
	if (!strcmp(kind, "FLOCK"))
		lock->kind = PARK_LOCK_FLOCK;
	else if (!strcmp(kind, "OFDLCK"))
		lock->kind = PARK_LOCK_OFD;
	else if (!strcmp(kind, "POSIX"))
		lock->kind = PARK_LOCK_POSIX;
	else
		return;
	ret->n_locks++;
}

int park_list_fdinfo(const char *text, struct park_item *ret)
{
	const char *flags = strstr(text, "flags:");
	long long pos;

	if (sscanf(text, "pos: %lld", &pos) != 1 || !flags)
		return -EBADMSG;
	ret->pos = pos;
	ret->flags =
		(unsigned)strtoul(flags + strlen("flags:"), NULL, 8) & ~(unsigned)FLAGS_OF_FIRST;
	for (const char *p = text; (p = strstr(p, "\nlock:")); p++)
		read_lock(p + 1, ret);
	return 0;
}

static bool is_same(const struct park_item *a, const struct park_item *b)
{
	return a->kind == PARK_FD && b->kind == PARK_FD && a->dev == b->dev && a->ino == b->ino &&
	       syscall(SYS_kcmp, a->pid, b->pid, KCMP_FILE, a->fd, b->fd) == 0;
}

static void add_item(struct park_list *l, struct park_item *it)
{
	if (l->n_items == PARK_MAX_ITEMS) {
		park_list_lose(l, it->pid, it->path, "exceeds the limit of files");
		free(it->path);
		return;
	}
	it->same = l->n_items;
	for (size_t i = 0; i < l->n_items && it->same == l->n_items; i++)
		if (l->items[i].same == i && is_same(&l->items[i], it))
			it->same = i;
	it->opened = -1;
	l->items = xrealloc(l->items, (l->n_items + 1) * sizeof(*l->items));
	l->items[l->n_items++] = *it;
}

/* The link's target, when it is on the share. */
static char *read_place(struct park_list *l, const char *link, struct park_item *it)
{
	char path[PATH_MAX + sizeof(DELETED)];
	const struct park_mount *m;
	struct statx st;
	ssize_t n;

	if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_MNT_ID, &st) <
			0 ||
		!is_share(l, makedev(st.stx_dev_major, st.stx_dev_minor)))
		return NULL;
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	m = find_mount(l, st.stx_mnt_id);
	it->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	it->ino = st.stx_ino;
	it->is_dir = S_ISDIR(st.stx_mode);
	if (!m || !is_below(path, m->place))
		park_list_lose(l, it->pid, path, "is on a mount that no longer exists");
	else if (str_ends(path, DELETED))
		park_list_lose(l, it->pid, path, "cannot be opened again");
	else if (!it->is_dir && !S_ISREG(st.stx_mode) && !(it->flags & O_PATH))
		park_list_lose(l, it->pid, path, "is not a regular file or directory");
	else {
		it->ns = m->ns;
		return xstrdup(path);
	}
	return NULL;
}

static void read_fd(struct park_list *l, pid_t pid, int fd)
{
	AUTO_FREE char *link = xasprintf("/proc/%d/fd/%d", pid, fd);
	AUTO_FREE char *info = xasprintf("/proc/%d/fdinfo/%d", pid, fd);
	AUTO_FREE char *text = NULL;
	struct park_item it = {.kind = PARK_FD, .pid = pid, .fd = fd};

	if (file_read(info, &text) < 0 || park_list_fdinfo(text, &it) < 0)
		return;
	it.path = read_place(l, link, &it);
	if (it.path)
		add_item(l, &it);
}

static void read_program(struct park_list *l, pid_t pid)
{
	AUTO_FREE char *cwd = xasprintf("/proc/%d/cwd", pid);
	AUTO_FREE char *root = xasprintf("/proc/%d/root", pid);
	AUTO_FREE char *fds = xasprintf("/proc/%d/fd", pid);
	struct park_item it = {.kind = PARK_CWD, .pid = pid, .flags = O_PATH | O_DIRECTORY};
	struct stat st;
	struct dirent *e;
	uint64_t fd;
	AUTO_DIR DIR *d = NULL;

	it.path = read_place(l, cwd, &it);
	if (it.path)
		add_item(l, &it);
	if (stat(root, &st) == 0 && is_share(l, st.st_dev))
		park_list_lose(l, pid, "root directory", "is in a workspace");
	d = opendir(fds);
	while ((e = dir_next(d)))
		if (str_to_u64(e->d_name, 0, INT32_MAX, &fd) == 0)
			read_fd(l, pid, (int)fd);
}

int park_list_read(struct park_list *l, const pid_t *skip, struct err *err)
{
	int r;

	*l = (struct park_list){0};
	l->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	l->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	add_ns(l, open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
	if (l->proc < 0 || l->root < 0 || l->n_ns != 1)
		return err_errno(err, -errno, "cannot list the guest's programs");
	for_each(l, skip, add_ns_of);
	r = read_all_mounts(l);
	if (r < 0)
		return err_errno(err, r, "cannot list the guest's mounts");
	if (l->n_mounts > 0)
		for_each(l, skip, read_program);
	return 0;
}
