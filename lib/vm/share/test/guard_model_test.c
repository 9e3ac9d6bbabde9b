/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_model_test [SEQUENCES [SEED]] - random calls of a hostile virtiofsd against the guard.
 *
 * The client knows files and directories by descriptors, as virtiofsd does. A call that the guard
 * lets continue is made now or later, after others: what is still under way when directories move.
 * Then the tree is compared with what an oracle believes (guard_oracle.c): what the host had under
 * refused names is the same file with the same content, nothing else has such a name, no symbolic
 * link was made on the way to one, and every reported name that differs is in the list.
 * SBX_GUARD_SEQUENCES in the environment is the number, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guard_oracle.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/share/guard_internal.h"

#define N_KNOWN 12
#define N_LATER 3
#define N_CALLS 10
#define SEQUENCES_OF_A_TREE 100
/* What was broken stays broken: no call repairs it. */
#define SEQUENCES_OF_A_LOOK 10
#define MAX_KEPT 32
#define EVIL "[core]\n\tfsmonitor = evil\n"

static const char *const names[] = {".git", "config", "config.lock", "hooks", "x", "x.sample",
	".envrc", ".claude", "a", "b", "a", "b", "Makefile", "HEAD", "modules", "commondir"};

/* What the host has, and must keep. */
static const struct {
	const char *path, *content; /* NULL: a directory */
} hosts[] = {{".git", NULL}, {".git/hooks", NULL}, {".git/modules", NULL}, {".claude", NULL},
	{"a", NULL}, {"a/b", NULL}, {"a/b/.git", NULL}, {"b", NULL}, {".git/modules/a", NULL},
	{".git/config", "[user]\n\tname = host\n"}, {".git/HEAD", "ref: refs/heads/main\n"},
	{".git/hooks/x", "host's hook"}, {".git/modules/a/config", "[user]\n\tname = sub\n"},
	{".claude/x", "host's"}, {".envrc", "host's"}, {"a/b/.git/config", "[user]\n\tname = b\n"},
	{"Makefile", "all:\n"}, {"b/Makefile", "b:\n"}, {"a/x", "plain"}};

struct later {
	bool used;
	struct guard_call c;
	int fd; /* the file, when it is not by name */
};

static struct guard *g;
static char top[64], ws[80], guard_dir[80];
static int known[N_KNOWN];
static struct later later[N_LATER];
static int handle = -1; /* open for writing */
static uint64_t seed;
static unsigned long n_sequences, n_made, n_refused, n_checked, n_fixed;
static char trail[8192];

static unsigned pick(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % n;
}

static void __attribute__((noreturn)) broken(const char *what, const char *path)
{
	(void)printf("FAILED: %s: %s\nsequence %lu\n%s", what, path, n_sequences, trail);
	exit(1);
}

static void say_call(const char *what, const struct guard_call *c, int r)
{
	size_t n = strlen(trail);

	(void)snprintf(trail + n, sizeof(trail) - n, "%s %s %s = %d\n", what,
		c->a.text + strlen(ws),
		c->type == GUARD_LINK || c->type == GUARD_RENAME ? c->b.text + strlen(ws) : "", r);
}

/* ---- the host's tree ---- */

static void put(int dir, const char *path, const char *content)
{
	AUTO_CLOSE int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_all(fd, content, strlen(content)) < 0)
		abort();
}

static void remove_tree(const char *path)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf '%s'", path);

	if (system(cmd) != 0)
		abort();
}

static void forget_all(void)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		fd_close(&known[i]);
	for (size_t i = 0; i < N_LATER; i++) {
		fd_close(&later[i].fd);
		fd_close(&later[i].c.fds[0]);
		fd_close(&later[i].c.fds[1]);
		later[i].used = false;
	}
	fd_close(&handle);
	guard_free(&g);
}

static void start_guard(const struct autorun_list *list)
{
	AUTO_CLOSE int dir = open(guard_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct guard_config cfg = {
		.level = GUARD_DEFAULT, .list = list, .dir_fd = dir, .event_fd = -1};
	struct scaffold s = {.n = 1};
	AUTO_CLOSE int pin = open(ws, O_PATH | O_CLOEXEC);
	struct err err = {0};

	s.pins[0] = (struct scaffold_pin){.fd = pin, .host = ws, .guest = ws, .dir = true};
	if (guard_new(&cfg, &s, &g, &err) < 0)
		broken("guard_new", err.text);
}

static void make_tree(const struct autorun_list *list)
{
	AUTO_CLOSE int dir = -1;

	forget_all();
	remove_tree(ws);
	remove_tree(guard_dir);
	if (mkdir(ws, 0700) < 0 || mkdir(guard_dir, 0700) < 0)
		abort();
	dir = open(ws, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (hosts[i].content)
			put(dir, hosts[i].path, hosts[i].content);
		else if (mkdirat(dir, hosts[i].path, 0755) < 0)
			abort();
	/* The host's own links: on the way to a refused name, and to a directory. */
	if (mkdirat(dir, "b/a", 0755) < 0 || symlinkat("../../a", dir, "b/a/.git") < 0 ||
		symlinkat("a", dir, "x") < 0)
		abort();
	start_guard(list);
	known[0] = TAKE_FD(dir);
	trail[0] = '\0';
}

/* ---- the oracle's look ---- */

struct kept {
	char path[128], content[64];
	ino_t ino;
	mode_t mode;
	bool seen;
};

static struct kept kept[MAX_KEPT];
static size_t n_kept;
static bool is_first;

static void read_entry(int dir, const char *name, const struct stat *st, struct kept *k)
{
	AUTO_CLOSE int fd = -1;

	memset(k->content, 0, sizeof(k->content));
	if (S_ISLNK(st->st_mode)) {
		if (readlinkat(dir, name, k->content, sizeof(k->content) - 1) < 0)
			abort();
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, k->content, sizeof(k->content) - 1) < 0)
		abort();
}

static struct kept *find_kept(const char *path)
{
	for (size_t i = 0; i < n_kept; i++)
		if (strcmp(kept[i].path, path) == 0)
			return &kept[i];
	return NULL;
}

static bool is_fixed_name(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strcmp(name, "/commondir") == 0;
}

/* A name that ends in config is checked: its content may be another one, but never evil. */
static void compare_refused(const char *path, const struct stat *st, const struct kept *now)
{
	struct kept *k = find_kept(path);

	if (strcmp(path + strlen(path) - 6, "config") == 0) {
		if (strstr(now->content, "fsmonitor"))
			broken("a checked file has what the check refuses", path);
		if (k)
			k->seen = true;
		return;
	}
	if (is_fixed_name(path)) {
		if (strcmp(now->content, "../..\n") != 0)
			broken("a fixed file has another content", path);
		return;
	}
	if (!k)
		broken("a refused name was made", path);
	if (k->ino != st->st_ino || k->mode != st->st_mode || strcmp(k->content, now->content) != 0)
		broken("what a refused name leads to has changed", path);
	k->seen = true;
}

static bool is_listed(const char *path)
{
	static struct guard_path p;
	AUTO_FREE char *text = xasprintf("%s/%s", ws, path);

	if (guard_path_set(g, text, NULL, &p) < 0)
		abort();
	return guard_knows(&g->reported, p.text);
}

static void compare_reported(const char *path, const struct stat *st, const struct kept *now)
{
	struct kept *k = find_kept(path);

	if (k)
		k->seen = true;
	if ((!k || k->ino != st->st_ino || k->mode != st->st_mode ||
		    strcmp(k->content, now->content) != 0) &&
		!is_listed(path))
		broken("a change was not recorded", path);
}

static void keep_entry(const char *path, const struct stat *st, const struct kept *now)
{
	struct kept *k = &kept[n_kept++];

	if (n_kept > MAX_KEPT)
		abort();
	*k = *now;
	(void)snprintf(k->path, sizeof(k->path), "%s", path);
	k->ino = st->st_ino;
	k->mode = st->st_mode;
}

static void look_at_entry(int dir, const char *name, const char *path, const struct stat *st)
{
	enum oracle_mode mode = oracle_mode(path);
	bool is_anchor = S_ISLNK(st->st_mode) && oracle_leads(path);
	struct kept now = {0};

	if (S_ISDIR(st->st_mode) || (mode == ORACLE_FREE && !is_anchor))
		return;
	read_entry(dir, name, st, &now);
	if (is_first)
		keep_entry(path, st, &now);
	else if (mode == ORACLE_REPORTED && !is_anchor)
		compare_reported(path, st, &now);
	else
		compare_refused(path, st, &now);
}

static void look_below(int dir, const char *path)
{
	AUTO_DIR DIR *d = dir_of(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *below = xasprintf("%s%s%s", path, *path ? "/" : "", e->d_name);
		AUTO_CLOSE int fd = -1;
		struct stat st;

		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			abort();
		look_at_entry(dirfd(d), e->d_name, below, &st);
		if (!S_ISDIR(st.st_mode))
			continue;
		fd = openat(dirfd(d), e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		look_below(fd, below);
	}
}

static void look(bool first)
{
	AUTO_CLOSE int dir = open(ws, O_PATH | O_DIRECTORY | O_CLOEXEC);

	is_first = first;
	n_kept = first ? 0 : n_kept;
	for (size_t i = 0; i < n_kept; i++)
		kept[i].seen = false;
	look_below(dir, "");
	for (size_t i = 0; i < n_kept && !first; i++)
		if (!kept[i].seen && oracle_mode(kept[i].path) == ORACLE_REFUSED)
			broken("a refused name was removed", kept[i].path);
		else if (!kept[i].seen && oracle_mode(kept[i].path) == ORACLE_FREE)
			broken("a link on the way to a refused name was removed", kept[i].path);
		else if (!kept[i].seen && !is_listed(kept[i].path))
			broken("a removal was not recorded", kept[i].path);
}

/* ---- the client ---- */

static int path_of(int fd, char buf[PATH_MAX])
{
	AUTO_FREE char *link = xasprintf("/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, buf, PATH_MAX - 1);

	buf[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -errno : 0;
}

static int set_path(int fd, const char *name, struct guard_path *ret)
{
	static char path[PATH_MAX];
	int r = path_of(fd, path);

	return r < 0 ? r : guard_path_set(g, path, name, ret);
}

static int some_fd(bool dir)
{
	struct stat st;

	for (int i = 0; i < 2 * N_KNOWN; i++) {
		int fd = known[pick(N_KNOWN)];

		if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode) == !dir)
			return fd;
	}
	return dir ? known[0] : -1;
}

static void try_lookup(void)
{
	int i = 1 + (int)pick(N_KNOWN - 1), dir = some_fd(true);
	int fd = openat(dir, names[pick(ARRAY_LEN(names))], O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	fd_close(&known[i]);
	known[i] = fd;
}

static void try_mkdir(void)
{
	const char *name = names[pick(ARRAY_LEN(names))];
	static struct guard_path p;
	int dir = some_fd(true);

	/* The tree stays small. */
	if (set_path(dir, name, &p) == 0 && strlen(p.text) < strlen(ws) + 24)
		(void)mkdirat(dir, name, 0755);
}

static void try_rmdir(void)
{
	(void)unlinkat(some_fd(true), names[pick(ARRAY_LEN(names))], AT_REMOVEDIR);
}

/* A call that continues, as virtiofsd would make it. */
static void make_call(struct later *l)
{
	const struct guard_call *c = &l->c;
	const char *name = guard_path_name(&c->a);
	AUTO_FREE char *link = xasprintf("/proc/self/fd/%d", l->fd);

	n_made++;
	if (c->type == GUARD_OPEN) {
		int fd = l->fd >= 0 ? open(link, O_WRONLY | O_TRUNC | O_CLOEXEC)
				    : openat(c->fds[0], name,
					      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		if (fd >= 0) {
			(void)!write(fd, pick(2) ? EVIL : "[user]\n\tname = guest\n", 21);
			fd_close(&handle);
			handle = fd;
		}
	} else if (c->type == GUARD_MODE) {
		(void)chmod(link, 0755);
	} else if (c->type == GUARD_REMOVE) {
		(void)unlinkat(c->fds[0], name, 0);
	} else if (c->type == GUARD_LINK) {
		(void)!linkat(AT_FDCWD, link, c->fds[1], guard_path_name(&c->b), AT_SYMLINK_FOLLOW);
	}
}

static void make_later(struct later *l)
{
	make_call(l);
	say_call("  later", &l->c, 1);
	fd_close(&l->fd);
	fd_close(&l->c.fds[0]);
	fd_close(&l->c.fds[1]);
	l->used = false;
}

static void set_call(struct later *l, enum guard_type type, enum dirty_op op)
{
	l->fd = l->c.fds[0] = l->c.fds[1] = -1;
	l->c.type = type;
	l->c.op = op;
	l->c.flags = 0;
	l->c.mode = 0755;
	l->c.a_is_link = false;
	(void)strcpy(l->c.content, "a");
	l->used = true;
}

/* The file that the call is about, by number or by name. */
static int aim_call(struct later *l, bool by_number)
{
	int fd = some_fd(!by_number);

	if (fd < 0)
		return -1;
	if (by_number)
		l->fd = dup(fd);
	else
		l->c.fds[0] = dup(fd);
	return set_path(fd, by_number ? NULL : names[pick(ARRAY_LEN(names))], &l->c.a);
}

static int aim_target(struct later *l)
{
	int fd = some_fd(true);

	l->c.fds[1] = dup(fd);
	return set_path(fd, names[pick(ARRAY_LEN(names))], &l->c.b);
}

static bool is_symlink(const struct later *l)
{
	struct stat st;

	if (l->fd >= 0)
		return fstat(l->fd, &st) == 0 && S_ISLNK(st.st_mode);
	return fstatat(l->c.fds[0], guard_path_name(&l->c.a), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISLNK(st.st_mode);
}

static int choose_call(struct later *l)
{
	static const struct {
		enum guard_type type;
		enum dirty_op op;
		bool by_number;
	} kinds[] = {{GUARD_OPEN, DIRTY_CREATE, false}, {GUARD_OPEN, DIRTY_CREATE, false},
		{GUARD_OPEN, DIRTY_WRITE, true}, {GUARD_MODE, DIRTY_MODE, true},
		{GUARD_REMOVE, DIRTY_REMOVE, false}, {GUARD_LINK, DIRTY_LINK, true},
		{GUARD_SYMLINK, DIRTY_SYMLINK, false}, {GUARD_RENAME, DIRTY_RENAME, false},
		{GUARD_RENAME, DIRTY_RENAME, false}, {GUARD_RENAME, DIRTY_RENAME, false}};
	unsigned k = pick(ARRAY_LEN(kinds));

	set_call(l, kinds[k].type, kinds[k].op);
	if (aim_call(l, kinds[k].by_number) < 0)
		return -1;
	l->c.creates_fd = l->c.op == DIRTY_CREATE;
	if (l->c.type == GUARD_REMOVE || l->c.type == GUARD_LINK)
		l->c.a_is_link = is_symlink(l);
	if (l->c.type == GUARD_RENAME && pick(6) == 0)
		l->c.flags = pick(2) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
	return l->c.type == GUARD_LINK || l->c.type == GUARD_RENAME ? aim_target(l) : 0;
}

static void try_call(void)
{
	struct later *l = &later[pick(N_LATER)];
	int r;

	if (l->used)
		make_later(l);
	if (choose_call(l) < 0) {
		l->c.type = GUARD_RENAME; /* is made by nobody */
		make_later(l);
		return;
	}
	r = guard_decide(g, &l->c);
	say_call(l->fd >= 0 ? "number" : "name", &l->c, r);
	n_refused += r == -EACCES;
	n_fixed += r == GUARD_SINK;
	n_checked += r == 0 && strcmp(guard_path_name(&l->c.b), "config") == 0;
	if (r != GUARD_CONTINUE) {
		l->c.type = GUARD_RENAME;
		make_later(l);
	} else if (pick(2)) {
		make_later(l);
	}
}

static void try_anything(void)
{
	switch (pick(8)) {
	case 0:
	case 1:
		try_lookup();
		break;
	case 2:
		try_mkdir();
		break;
	case 3:
		try_rmdir();
		break;
	case 4:
		if (handle >= 0)
			(void)!pwrite(handle, EVIL, strlen(EVIL), 0);
		break;
	default:
		try_call();
	}
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("SBX_GUARD_SEQUENCES");
	unsigned long n = wanted     ? strtoul(wanted, NULL, 10)
			  : argc > 1 ? strtoul(argv[1], NULL, 10)
				     : 20000;
	AUTO_AUTORUN struct autorun_list *list = NULL;

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	(void)strcpy(top, access("/dev/shm", W_OK) == 0 ? "/dev/shm/sbx-guard-XXXXXX"
							: "/tmp/sbx-guard-XXXXXX");
	if (!mkdtemp(top) || autorun_parse(oracle_rows, strlen(oracle_rows), &list, NULL) < 0)
		return 1;
	(void)snprintf(ws, sizeof(ws), "%s/ws", top);
	(void)snprintf(guard_dir, sizeof(guard_dir), "%s/guard", top);
	memset(known, 0xff, sizeof(known));
	for (size_t i = 0; i < N_LATER; i++)
		later[i].fd = later[i].c.fds[0] = later[i].c.fds[1] = -1;
	for (; n_sequences < n; n_sequences++) {
		if (n_sequences % SEQUENCES_OF_A_TREE == 1 || n_sequences == 0) {
			make_tree(list);
			look(true);
		}
		for (int i = 0; i < N_CALLS; i++)
			try_anything();
		if (n_sequences % SEQUENCES_OF_A_LOOK == 0)
			look(false);
	}
	forget_all();
	remove_tree(top);
	(void)printf("%lu sequences: %lu calls made, %lu refused, %lu checked, %lu fixed\n", n,
		n_made, n_refused, n_checked, n_fixed);
	return n_made > n && n_refused > n / 10 && n_fixed > n / 1000 ? 0 : 1;
}
