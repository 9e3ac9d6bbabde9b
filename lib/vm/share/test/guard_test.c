/* SPDX-License-Identifier: Apache-2.0 */
/* A process in the real filter makes the calls of virtiofsd; the real supervisor and the real hand,
 * both sealed, decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "filter_rig.h"
#include "guard_oracle.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/vm/share/guard_internal.h"
#include "lib/vm/share/hide.h"

/* What the filtered process is to do. `a` and `b` are DIR/NAME; by_fd: the file is opened first,
 * and the call is about its number. */
struct order {
	enum {
		TO_CREATE,
		TO_WRITE,
		TO_TRUNCATE,
		TO_READ,
		TO_REMOVE,
		TO_RMDIR,
		TO_MKDIR,
		TO_RENAME,
		TO_LINK,
		TO_SYMLINK,
		TO_MODE,
		TO_FCHMOD,
		TO_MKNOD,
		TO_OPENAT2
	} what;
	unsigned flags;
	char a[64], b[64];
};

static char top[] = "/tmp/sbx-guard-XXXXXX";
static char ws[64], guard_dir[64];
static struct autorun_list *list;
static struct jail_child supervisor = {0, -1, -1, 0}, hand = {0, -1, -1, 0};
static pid_t child;
static int orders = -1, results = -1, events = -1;

/* ---- the filtered process ---- */

static int dir_of_path(int root, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");

	*ret_name = slash ? slash + 1 : path;
	return openat(root, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static long on_file(int root, int proc, const struct order *o)
{
	AUTO_CLOSE int fd = openat(root, o->a, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int rd = openat(root, o->a, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *number = xasprintf("%d", fd);
	const char *name;

	if (o->what == TO_LINK) {
		AUTO_CLOSE int to = dir_of_path(root, o->b, &name);

		return syscall(SYS_linkat, proc, number, to, name, AT_SYMLINK_FOLLOW);
	}
	if (o->what == TO_MODE)
		return syscall(SYS_fchmodat, proc, number, 0755);
	if (o->what == TO_FCHMOD)
		return syscall(SYS_fchmod, rd, 0755);
	return syscall(SYS_openat, proc, number,
		o->what == TO_TRUNCATE ? O_RDONLY | O_TRUNC
		: o->what == TO_READ   ? O_RDONLY
				       : O_WRONLY,
		0);
}

static long on_name(int at, const char *name, int to, const char *new_name, const struct order *o)
{
	char how[24] = {O_RDWR};

	switch (o->what) {
	case TO_CREATE:
		return syscall(SYS_openat, at, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	case TO_REMOVE:
		return syscall(SYS_unlinkat, at, name, 0);
	case TO_RMDIR:
		return syscall(SYS_unlinkat, at, name, AT_REMOVEDIR);
	case TO_MKDIR:
		return syscall(SYS_mkdirat, at, name, 0755);
	case TO_MKNOD:
		return syscall(SYS_mknodat, at, name, S_IFREG | 0644, 0);
	case TO_OPENAT2:
		return syscall(SYS_openat2, at, name, how, sizeof(how));
	case TO_SYMLINK:
		return syscall(SYS_symlinkat, o->b, at, name);
	case TO_RENAME:
		return o->flags ? syscall(SYS_renameat2, at, name, to, new_name, o->flags)
				: syscall(SYS_renameat, at, name, to, new_name);
	default:
		return -1;
	}
}

/* The content that is written where a file is opened for writing. */
static const char content[] = "from the guest";

static int obey(int root, int proc, const struct order *o)
{
	const char *name, *new_name = NULL;
	AUTO_CLOSE int at = dir_of_path(root, o->a, &name);
	AUTO_CLOSE int to = o->what == TO_RENAME ? dir_of_path(root, o->b, &new_name) : -1;
	bool by_fd = o->what == TO_WRITE || o->what == TO_TRUNCATE || o->what == TO_READ ||
		     o->what == TO_LINK || o->what == TO_MODE || o->what == TO_FCHMOD;
	long r = by_fd ? on_file(root, proc, o) : on_name(at, name, to, new_name, o);

	if (r < 0)
		return errno;
	if (r > 2) {
		if (o->what != TO_READ)
			(void)!write((int)r, content, sizeof(content) - 1);
		(void)close((int)r);
	}
	return 0;
}

static void __attribute__((noreturn)) be_filtered(int in, int out)
{
	int root = open(ws, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int proc = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct order o;

	filter_rig_enter(in, out, &o, sizeof(o));
	while (read(in, &o, sizeof(o)) == sizeof(o)) {
		int r = obey(root, proc, &o);

		if (write(out, &r, sizeof(r)) != sizeof(r))
			_exit(1);
	}
	_exit(0);
}

/* ---- the test's side ---- */

static int do_order(const struct order *o)
{
	int r;

	assert_int_equal(write(orders, o, sizeof(*o)), sizeof(*o));
	assert_int_equal(read(results, &r, sizeof(r)), sizeof(r));
	return r;
}

#define TRY(what_, a_) do_order(&(struct order){.what = what_, .a = a_})
#define TRY2(what_, a_, b_) do_order(&(struct order){.what = what_, .a = a_, .b = b_})
#define TRY_FLAGS(a_, b_, f) \
	do_order(&(struct order){.what = TO_RENAME, .a = a_, .b = b_, .flags = f})

static char *in_ws(const char *path)
{
	return xasprintf("%s/%s", ws, path);
}

static void put(const char *path, const char *text)
{
	AUTO_FREE char *at = in_ws(path);
	AUTO_CLOSE int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		fail_msg("%s: %s", at, strerror(errno));
}

static void make(const char *path)
{
	AUTO_FREE char *at = in_ws(path);

	if (mkdir(at, 0755) < 0)
		fail_msg("%s: %s", at, strerror(errno));
}

static void assert_text(const char *dir, const char *path, const char *want)
{
	AUTO_FREE char *at = xasprintf("%s/%s", dir, path);
	AUTO_FREE char *text = NULL;
	size_t n;

	if (file_load_no_link(at, 65536, &text, &n, NULL) < 0)
		fail_msg("%s cannot be read", at);
	assert_string_equal(text, want);
}

static bool is_there(const char *path)
{
	AUTO_FREE char *at = in_ws(path);

	return access(at, F_OK) == 0;
}

static int get_listener(void)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct order none = {0};
	int theirs, fd;

	assert_int_equal(read(results, &theirs, sizeof(theirs)), sizeof(theirs));
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	assert_true(fd >= 0);
	assert_int_equal(write(orders, &none, sizeof(none)), sizeof(none));
	return fd;
}

static void start_processes(enum guard_level level)
{
	AUTO_CLOSE int dir = open(guard_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int pin = open(ws, O_PATH | O_CLOEXEC);
	AUTO_CLOSE int theirs = -1;
	CLEANUP(guard_free) struct guard *g = NULL;
	struct scaffold s = {.n = 1};
	struct hide_ask ask = {.room = {.sock = -1}};
	struct err err = {0};
	int pair[2], listener = get_listener();

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	events = pair[0];
	theirs = pair[1];
	s.pins[0] = (struct scaffold_pin){.fd = pin, .host = ws, .guest = ws, .dir = true};
	const struct guard_config cfg = {
		.level = level, .list = list, .dir_fd = dir, .event_fd = theirs};
	assert_int_equal(guard_new(&cfg, &s, &g, &err), 0);
	assert_int_equal(guard_start_hand(g, &hand, &err), 0);
	ask.guard = g;
	assert_int_equal(hide_start(&listener, &ask, &supervisor, &err), 0);
}

static void start_guard(enum guard_level level)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		(void)close(in[1]);
		be_filtered(in[0], out[1]);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	orders = in[1];
	results = out[0];
	start_processes(level);
}

static void stop_guard(void)
{
	fd_close(&orders);
	fd_close(&results);
	fd_close(&events);
	if (child > 0)
		(void)waitpid(child, NULL, 0);
	child = 0;
	jail_child_kill(&supervisor);
	jail_child_kill(&hand);
}

static int setup(void **state)
{
	(void)strcpy(top, "/tmp/sbx-guard-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	(void)snprintf(ws, sizeof(ws), "%s/ws", top);
	(void)snprintf(guard_dir, sizeof(guard_dir), "%s/guard", top);
	if (mkdir(ws, 0755) < 0 || mkdir(guard_dir, 0700) < 0)
		return -1;
	make(".git");
	make(".git/hooks");
	make(".git/objects");
	put(".git/config", "[user]\n\tname = host\n");
	put(".git/HEAD", "ref: refs/heads/main\n");
	put(".git/hooks/x", "host's");
	make("a");
	make("a/b");
	put("a/b/.envrc", "host's");
	put("a/plain", "plain");
	put("Makefile", "all:\n");
	return 0;
}

static int setup_default(void **state)
{
	if (setup(state) < 0)
		return -1;
	start_guard(GUARD_DEFAULT);
	return 0;
}

static int setup_report(void **state)
{
	if (setup(state) < 0)
		return -1;
	start_guard(GUARD_REPORT);
	return 0;
}

static int setup_strict(void **state)
{
	if (setup(state) < 0)
		return -1;
	start_guard(GUARD_STRICT);
	return 0;
}

static int teardown(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf '%s'", top);

	stop_guard();
	return system(cmd);
}

/* ---- */

static void ordinary_work_goes_on(void **state)
{
	assert_int_equal(TRY(TO_CREATE, "a/new"), 0);
	assert_text(ws, "a/new", content);
	assert_int_equal(TRY(TO_WRITE, "a/plain"), 0);
	assert_int_equal(TRY2(TO_RENAME, "a/new", "new"), 0);
	assert_int_equal(TRY2(TO_LINK, "new", "hard"), 0);
	assert_int_equal(TRY2(TO_SYMLINK, "soft", "new"), 0);
	assert_int_equal(TRY(TO_MODE, "new"), 0);
	assert_int_equal(TRY(TO_MKNOD, "node"), 0);
	assert_int_equal(TRY(TO_REMOVE, "soft"), 0);
	assert_int_equal(TRY(TO_MKDIR, "d"), 0);
	assert_int_equal(TRY(TO_CREATE, "d/f"), 0);
	assert_int_equal(TRY2(TO_RENAME, "d", "a/e"), 0);
	assert_true(is_there("a/e/f"));
	assert_int_equal(TRY(TO_CREATE, ".git/index.lock"), 0);
	assert_int_equal(TRY2(TO_RENAME, ".git/index.lock", ".git/index"), 0);
	assert_int_equal(TRY(TO_WRITE, ".git/HEAD"), 0);
	assert_int_equal(TRY(TO_READ, ".git/config"), 0);
	assert_int_equal(TRY(TO_CREATE, ".git/hooks/y.sample"), 0);
	/* the kernel's own answers stay */
	assert_int_equal(TRY2(TO_RENAME, "none", "other"), ENOENT);
	assert_int_equal(TRY_FLAGS("new", "hard", RENAME_NOREPLACE), EEXIST);
	assert_int_equal(TRY(TO_CREATE, "new"), EEXIST);
	assert_int_equal(TRY2(TO_RENAME, "a", "a/b"), EACCES); /* .envrc is below */
}

static void guarded_names_are_refused(void **state)
{
	assert_int_equal(TRY(TO_CREATE, ".envrc"), EACCES);
	assert_int_equal(TRY(TO_MKNOD, ".envrc"), EACCES);
	assert_int_equal(TRY(TO_CREATE, ".git/hooks/post-merge"), EACCES);
	assert_int_equal(TRY(TO_WRITE, ".git/config"), EACCES);
	assert_int_equal(TRY(TO_TRUNCATE, ".git/config"), EACCES);
	assert_int_equal(TRY(TO_REMOVE, ".git/config"), EACCES);
	assert_int_equal(TRY(TO_MODE, ".git/hooks/x"), EACCES);
	assert_int_equal(TRY(TO_FCHMOD, ".git/hooks/x"), EACCES);
	assert_int_equal(TRY(TO_FCHMOD, ".git/config"), 0); /* git tries modes out on it */
	assert_int_equal(TRY2(TO_LINK, ".git/config", "seen"), EACCES);
	assert_int_equal(TRY2(TO_LINK, "a/plain", ".envrc"), EACCES);
	assert_int_equal(TRY2(TO_SYMLINK, ".envrc", "a/plain"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "a/plain", ".envrc"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, ".git/hooks/x", "x"), EACCES);
	assert_int_equal(TRY_FLAGS("a/plain", ".git/hooks/x", RENAME_EXCHANGE), EACCES);
	assert_int_equal(TRY_FLAGS(".git/hooks/x", "a/plain", RENAME_EXCHANGE), EACCES);
	assert_int_equal(TRY_FLAGS("a/plain", "a/q", RENAME_WHITEOUT), EINVAL);
	assert_int_equal(TRY(TO_OPENAT2, "a/plain"), ENOSYS);
	assert_text(ws, ".git/config", "[user]\n\tname = host\n");
	assert_text(ws, ".git/hooks/x", "host's");
}

/* The first attack: make room for a directory of one's own above a guarded name. */
static void a_directory_above_a_guarded_name_stays(void **state)
{
	assert_int_equal(TRY2(TO_RENAME, "a", "away"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "a/b", "a/c"), EACCES);
	assert_int_equal(TRY(TO_MKDIR, "mine"), 0);
	assert_int_equal(TRY_FLAGS("mine", "a", RENAME_EXCHANGE), EACCES);
	assert_int_equal(TRY2(TO_RENAME, ".git", "git"), EACCES);
	assert_text(ws, "a/b/.envrc", "host's");
}

static void a_directory_cannot_become_guarded(void **state)
{
	assert_int_equal(TRY(TO_MKDIR, "mine"), 0);
	assert_int_equal(TRY(TO_CREATE, "mine/config"), 0);
	assert_int_equal(TRY(TO_CREATE, "mine/evil"), 0);
	assert_int_equal(TRY2(TO_RENAME, "mine", "a/.git"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "mine", ".claude"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "mine", ".git/modules"), EACCES);
	assert_int_equal(TRY_FLAGS("mine", ".git/hooks", RENAME_EXCHANGE), EACCES);
	/* a directory that is made in its place is judged by it */
	assert_int_equal(TRY(TO_MKDIR, "a/.git"), 0);
	assert_int_equal(TRY(TO_CREATE, "a/.git/config"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "mine/config", "a/.git/config"), EACCES);
	/* and can move where the same is refused */
	assert_int_equal(TRY2(TO_RENAME, "a/.git", "mine/.git"), 0);
	assert_int_equal(TRY(TO_CREATE, "mine/.git/config"), EACCES);
}

static void no_link_leads_to_guarded_names(void **state)
{
	AUTO_FREE char *there = in_ws("b/.git");

	make("b");
	assert_int_equal(symlink("../a", there), 0);
	assert_int_equal(TRY2(TO_SYMLINK, "a/.git", "../mine"), EACCES);
	assert_int_equal(TRY2(TO_SYMLINK, ".claude", "mine"), EACCES);
	assert_int_equal(TRY2(TO_SYMLINK, "soft", "mine"), 0);
	assert_int_equal(TRY2(TO_RENAME, "soft", "a/.git"), EACCES);
	assert_int_equal(TRY2(TO_LINK, "soft", "a/.git"), EPERM);
	assert_int_equal(TRY2(TO_LINK, "soft", "soft2"), EPERM);
	assert_int_equal(TRY(TO_REMOVE, "b/.git"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "b/.git", "x"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "a/plain", "b/.git"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, "b", "c"), EACCES);
	assert_int_equal(TRY(TO_REMOVE, "soft"), 0);
}

static void next_event(struct guard_event *e)
{
	struct pollfd p = {.fd = events, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 2000), 1);
	assert_int_equal(read(events, e, sizeof(*e)), sizeof(*e));
}

static size_t n_rows(struct dirty_row *last)
{
	AUTO_FREE char *at = xasprintf("%s/dirty", guard_dir);
	AUTO_FREE char *text = NULL;
	struct slice rest;
	size_t n, rows = 0;

	if (file_load(at, DIRTY_MAX_BYTES, &text, &n, NULL) < 0)
		return 0;
	for (rest = slice_of(text, n); dirty_next(&rest, last) == 1;)
		rows++;
	return rows;
}

static void a_reported_change_is_recorded_once_with_a_copy(void **state)
{
	static struct dirty_row row;
	struct guard_event e;

	assert_int_equal(TRY(TO_WRITE, "Makefile"), 0);
	assert_int_equal(TRY(TO_WRITE, "Makefile"), 0);
	assert_int_equal(n_rows(&row), 1);
	assert_int_equal(row.kind, 42);
	assert_int_equal(row.state, DIRTY_CHANGED);
	assert_string_equal(row.path, "Makefile");
	assert_string_equal(row.mount, ws);
	assert_int_equal(row.copy, 1);
	assert_text(guard_dir, "copy/1", "all:\n");
	next_event(&e);
	assert_int_equal(e.what, GUARD_REPORTED);
	assert_int_equal(e.kind, 42);
	assert_non_null(strstr(e.path, "/ws/Makefile"));
	assert_int_equal(TRY(TO_CREATE, "a/Makefile"), 0);
	assert_int_equal(n_rows(&row), 2);
	assert_int_equal(row.state, DIRTY_NEW);
	assert_int_equal(row.copy, 0);
	assert_int_equal(TRY(TO_CREATE, ".envrc"), EACCES);
	next_event(&e);
	next_event(&e);
	assert_int_equal(e.what, GUARD_DENIED);
	assert_int_equal(e.op, DIRTY_CREATE);
	assert_int_equal(e.kind, 15);
}

/* Each way to change a file without opening it under its name. */
static void no_way_around_the_record(void **state)
{
	static struct dirty_row row;

	put("a/Makefile", "a:\n");
	put("a/b/Makefile", "b:\n");
	assert_int_equal(TRY2(TO_LINK, "Makefile", "m"), 0);
	assert_int_equal(n_rows(&row), 1);
	assert_string_equal(row.path, "Makefile");
	assert_int_equal(TRY2(TO_RENAME, "a/Makefile", "a/m"), 0);
	assert_int_equal(n_rows(&row), 2);
	assert_string_equal(row.path, "a/Makefile");
	assert_int_equal(TRY(TO_MODE, "a/b/Makefile"), 0);
	assert_int_equal(n_rows(&row), 3);
	assert_int_equal(TRY(TO_MKDIR, "d"), 0);
	assert_int_equal(TRY2(TO_SYMLINK, "d/Makefile", "../m"), 0);
	assert_int_equal(n_rows(&row), 4);
	assert_int_equal(TRY2(TO_RENAME, "d", "e"), 0);
	assert_int_equal(n_rows(&row), 5);
	assert_string_equal(row.path, "e/Makefile");
}

/* A call that was recorded may be made after its directory has moved. */
static void a_file_that_is_made_after_its_directory_moved_is_recorded(void **state)
{
	static struct dirty_row row;

	assert_int_equal(TRY(TO_MKDIR, "d"), 0);
	assert_int_equal(TRY(TO_CREATE, "d/Makefile"), 0);
	assert_int_equal(TRY(TO_REMOVE, "d/Makefile"), 0);
	assert_int_equal(n_rows(&row), 1);
	assert_int_equal(TRY2(TO_RENAME, "d", "e"), 0);
	assert_int_equal(n_rows(&row), 2);
	assert_string_equal(row.path, "e/Makefile");
	assert_int_equal(row.state, DIRTY_NEW);
}

static void the_list_can_be_begun_anew(void **state)
{
	AUTO_FREE char *dirty = xasprintf("%s/dirty", guard_dir);
	static struct dirty_row row;

	assert_int_equal(TRY(TO_WRITE, "Makefile"), 0);
	assert_int_equal(unlink(dirty), 0);
	assert_int_equal(TRY(TO_WRITE, "Makefile"), 0);
	assert_int_equal(n_rows(&row), 1);
	assert_int_equal(row.copy, 2);
	stop_guard();
	start_guard(GUARD_DEFAULT);
	assert_int_equal(TRY(TO_WRITE, "Makefile"), 0);
	assert_int_equal(n_rows(&row), 1); /* the next start knows it */
}

static void a_configuration_that_names_no_program_is_accepted(void **state)
{
	static struct dirty_row row;
	struct guard_event e;

	put(".git/config.lock", "[user]\n\tname = host\n\temail = me@host\n");
	assert_int_equal(TRY2(TO_RENAME, ".git/config.lock", ".git/config"), 0);
	assert_false(is_there(".git/config.lock"));
	assert_int_equal(n_rows(&row), 1);
	assert_string_equal(row.path, ".git/config");
	assert_text(guard_dir, "copy/1", "[user]\n\tname = host\n");
	next_event(&e);
	next_event(&e);
	assert_int_equal(e.what, GUARD_CHECKED);
	put(".git/config.lock", "[user]\n\tname = host\n[core]\n\tfsmonitor = evil\n");
	assert_int_equal(TRY2(TO_RENAME, ".git/config.lock", ".git/config"), EACCES);
	next_event(&e);
	assert_int_equal(e.what, GUARD_DENIED);
	assert_non_null(strstr(e.reason, "core.fsmonitor"));
	/* mv(1) replaces nothing if it does not know of a target */
	assert_int_equal(TRY(TO_REMOVE, ".git/config.lock"), 0);
	put(".git/config.lock", "[user]\n\tname = host\n");
	assert_int_equal(TRY_FLAGS(".git/config.lock", ".git/config", RENAME_NOREPLACE), EEXIST);
	assert_int_equal(TRY_FLAGS(".git/config.lock", ".git/config", RENAME_EXCHANGE), EACCES);
	/* only from the name that git uses, in the same directory, and no link */
	put("a/config.lock", "[user]\n\tname = x\n");
	put(".git/other", "[user]\n\tname = x\n");
	assert_int_equal(TRY2(TO_RENAME, "a/config.lock", ".git/config"), EACCES);
	assert_int_equal(TRY2(TO_RENAME, ".git/other", ".git/config"), EACCES);
	assert_int_equal(TRY(TO_REMOVE, ".git/config.lock"), 0);
	assert_int_equal(TRY2(TO_SYMLINK, ".git/config.lock", "other"), 0);
	assert_int_equal(TRY2(TO_RENAME, ".git/config.lock", ".git/config"), EACCES);
}

/* What the guest holds open is not the file that takes the place. */
static void the_guests_file_does_not_become_the_configuration(void **state)
{
	AUTO_FREE char *config = in_ws(".git/config");
	AUTO_FREE char *lock = in_ws(".git/config.lock");
	struct stat before, after;

	put(".git/config.lock", "[user]\n\tname = new\n");
	assert_int_equal(stat(lock, &before), 0);
	assert_int_equal(TRY2(TO_RENAME, ".git/config.lock", ".git/config"), 0);
	assert_int_equal(stat(config, &after), 0);
	assert_true(before.st_ino != after.st_ino);
}

/* The guest's content goes to the sink. */
static void a_linked_work_tree_gets_the_only_content_it_can_have(void **state)
{
	make(".git/modules");
	make(".git/modules/x");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(TRY(TO_CREATE, ".git/modules/x/commondir"), 0);
		assert_text(ws, ".git/modules/x/commondir", "../..\n");
		assert_int_equal(TRY(TO_CREATE, ".git/modules/x/commondir"), EEXIST);
		assert_int_equal(TRY(TO_WRITE, ".git/modules/x/commondir"), EACCES);
		assert_int_equal(TRY(TO_TRUNCATE, ".git/modules/x/commondir"), EACCES);
		assert_int_equal(TRY(TO_FCHMOD, ".git/modules/x/commondir"), EACCES);
		assert_int_equal(TRY2(TO_RENAME, ".git/modules/x/commondir", "a/c"), EACCES);
		assert_int_equal(TRY2(TO_RENAME, "a/plain", ".git/modules/x/commondir"), EACCES);
		assert_int_equal(TRY2(TO_LINK, ".git/modules/x/commondir", "a/c"), EACCES);
		assert_int_equal(TRY2(TO_RENAME, ".git/modules/x", ".git/modules/y"), EACCES);
		assert_text(ws, ".git/modules/x/commondir", "../..\n");
		assert_int_equal(TRY(TO_REMOVE, ".git/modules/x/commondir"), 0);
	}
	assert_int_equal(TRY2(TO_SYMLINK, ".git/modules/x/commondir", "../a"), EACCES);
	assert_int_equal(TRY(TO_MKNOD, ".git/modules/x/commondir"), EACCES);
	assert_int_equal(TRY2(TO_LINK, "a/plain", ".git/modules/x/commondir"), EACCES);
	assert_false(is_there(".git/modules/x/commondir"));
}

static void report_refuses_nothing(void **state)
{
	static struct dirty_row row;

	assert_int_equal(TRY(TO_CREATE, ".envrc"), 0);
	assert_int_equal(TRY(TO_WRITE, ".git/config"), 0);
	assert_int_equal(TRY2(TO_RENAME, "a", "c"), 0);
	assert_int_equal(n_rows(&row), 4);
}

static void strict_refuses_what_is_reported(void **state)
{
	assert_int_equal(TRY(TO_WRITE, "Makefile"), EACCES);
	assert_int_equal(TRY(TO_CREATE, "a/Makefile"), EACCES);
	assert_int_equal(TRY(TO_WRITE, "a/plain"), 0);
}

static void without_its_processes_nothing_is_changed(void **state)
{
	jail_child_kill(&hand);
	assert_int_equal(TRY(TO_CREATE, "a/new"), 0); /* nobody needs the hand for it */
	assert_int_equal(TRY(TO_WRITE, "Makefile"), ENOSYS);
	assert_int_equal(TRY(TO_CREATE, "a/new2"), ENOSYS);
	assert_int_equal(TRY(TO_READ, "Makefile"), 0);
	assert_text(ws, "Makefile", "all:\n");
}

int main(void)
{
#define WITH(level, test) cmocka_unit_test_setup_teardown(test, setup_##level, teardown)
	const struct CMUnitTest tests[] = {
		WITH(default, ordinary_work_goes_on),
		WITH(default, guarded_names_are_refused),
		WITH(default, a_directory_above_a_guarded_name_stays),
		WITH(default, a_directory_cannot_become_guarded),
		WITH(default, no_link_leads_to_guarded_names),
		WITH(default, a_reported_change_is_recorded_once_with_a_copy),
		WITH(default, no_way_around_the_record),
		WITH(default, a_file_that_is_made_after_its_directory_moved_is_recorded),
		WITH(default, the_list_can_be_begun_anew),
		WITH(default, a_configuration_that_names_no_program_is_accepted),
		WITH(default, the_guests_file_does_not_become_the_configuration),
		WITH(default, a_linked_work_tree_gets_the_only_content_it_can_have),
		WITH(report, report_refuses_nothing),
		WITH(strict, strict_refuses_what_is_reported),
		WITH(default, without_its_processes_nothing_is_changed),
	};
	int r;

	if (autorun_parse(oracle_rows, strlen(oracle_rows), &list, NULL) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	autorun_free(&list);
	return r;
}
