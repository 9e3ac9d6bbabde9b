/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hold.h and the covers of scaffold.h promise, on a real tree in a user and mount namespace:
 * the guest's operations on names are done on the tree that virtiofsd serves, and the host's view
 * is compared. The model test does random ones: what is pinned never changes.
 * SBX_HOLD_ROUNDS  how many sequences (1000)
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/jail/tree.h"
#include "lib/vm/share/scaffold.h"

#define OPS_PER_ROUND 16
#define CHILD_OK 42

static char dir[PATH_MAX];

static const char *at(const char *name)
{
	static char buf[16][PATH_MAX + 64];
	static unsigned i;
	char *p = buf[i++ % 16];

	(void)snprintf(p, sizeof(buf[0]), "%s/%s", dir, name);
	return p;
}

/* In the guest's view: the child's current directory is the workspace. */
static int expect(const char *what, long r, int want)
{
	int got = r < 0 ? errno : 0;

	if (got == want)
		return 0;
	(void)fprintf(stderr, "%s: %s instead of %s\n", what, strerror(got), strerror(want));
	return -1;
}

static int put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

static int write_map(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* A new user and mount namespace with the tree at root/share, and the workspace as current
 * directory. */
static int enter(const struct scaffold *s)
{
	AUTO_FREE char *uid = xasprintf("0 %u 1", getuid()), *gid = xasprintf("0 %u 1", getgid());
	struct err err = {0};
	AUTO_CLOSE int root = -1;
	AUTO_CLOSE int place = -1;
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
		write_map("/proc/self/setgroups", "deny") < 0 ||
		write_map("/proc/self/uid_map", uid) < 0 ||
		write_map("/proc/self/gid_map", gid) < 0)
		return -1;
	place = open(at("root"), O_PATH | O_CLOEXEC);
	r = tree_tmpfs("1M", "0755", &root);
	if (r == 0)
		r = tree_attach(root, place);
	if (r == 0)
		r = scaffold_build(s, root, &err);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", err_text(&err, r));
	return r < 0 ? r : chdir(at("root/share/w"));
}

static void in_guest(const struct share_config *cfg, int (*work)(void))
{
	struct scaffold s;
	struct err err = {0};
	int status;
	pid_t pid;

	if (scaffold_pin(cfg, &s, &err) < 0)
		fail_msg("%s", err.text);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(enter(&s) == 0 && work() == 0 ? CHILD_OK : 1);
	scaffold_done(&s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHILD_OK);
}

/* ---- F6, step by step ---- */

static int replace_the_hooks(void)
{
	int bad = 0;

	bad |= expect("write", put(".git/hooks/pre-commit", "evil"), EROFS);
	bad |= expect("rename of the pin", rename(".git/hooks", "old"), EXDEV);
	bad |= expect("rename of its parent", rename(".git", ".git.old"), EBUSY);
	bad |= expect(
		"exchange", renameat2(AT_FDCWD, ".git", AT_FDCWD, "src", RENAME_EXCHANGE), EBUSY);
	bad |= expect("exchange, other way",
		renameat2(AT_FDCWD, "src", AT_FDCWD, ".git", RENAME_EXCHANGE), EBUSY);
	bad |= expect("rename over it", rename("src", ".git"), EBUSY);
	bad |= expect("rmdir", rmdir(".git"), EBUSY);
	bad |= expect("rename of the deep one", rename("a/b", "a/c"), EBUSY);
	bad |= expect("rename of the top one", rename("a", "z"), EBUSY);
	bad |= expect("link to a pinned file", link("a/b/pin", "elsewhere"), EXDEV);
	/* and work goes on around it */
	bad |= expect("write beside", put(".git/config", "mine"), 0);
	bad |= expect("rename beside", rename(".git/config", ".git/config.new"), 0);
	bad |= expect("rename of others", rename("src", "src.new"), 0);
	return bad;
}

static void renaming_the_parent_does_not_replace_a_read_only_workspace(void **state)
{
	const struct share_mount m[] = {{at("ws"), "/w", false},
		{at("ws/.git/hooks"), "/w/.git/hooks", true},
		{at("ws/a/b/pin"), "/w/a/b/pin", true}};
	struct share_config cfg = {.mounts = m, .n_mounts = 3, .home = "/nowhere", .log_fd = -1};

	assert_int_equal(
		system("mkdir -p ws/.git/hooks ws/src ws/a/b && echo good > ws/a/b/pin"), 0);
	in_guest(&cfg, replace_the_hooks);
	assert_int_equal(access(at("ws/.git/hooks/pre-commit"), F_OK), -1);
	assert_int_equal(access(at("ws/.git/config.new"), F_OK), 0);
	assert_int_equal(access(at("ws/.git.old"), F_OK), -1);
}

static void read_only_here_and_writable_there_is_refused(void **state)
{
	const struct share_mount m[] = {
		{at("ws"), "/w", false}, {at("ws/a"), "/data", true}, {at("ws/a"), "/w/a", true}};
	struct share_config cfg = {.mounts = m, .n_mounts = 2, .home = "/nowhere", .log_fd = -1};
	struct scaffold s;
	struct err err = {0};

	assert_int_equal(scaffold_pin(&cfg, &s, &err), -EINVAL);
	assert_non_null(strstr(
		err.text, "shared read-only at /data, but the sandbox can change it at /w/a"));
	cfg.n_mounts = 3; /* now it is read-only at both */
	assert_int_equal(scaffold_pin(&cfg, &s, &err), 0);
	scaffold_done(&s);
}

/* ---- covers ---- */

static int look_for_the_state(void)
{
	int bad = 0;

	bad |= expect("read", open("own/state/sbx/key", O_RDONLY | O_CLOEXEC), ENOENT);
	bad |= expect("write", put("own/state/sbx/policy", "allow"), EROFS);
	bad |= expect("write to the runtime directory", put("own/run/sbx/x", "x"), EROFS);
	bad |= expect("rmdir", rmdir("own/state/sbx"), EBUSY);
	bad |= expect("rename", rename("own/state", "own/old"), EBUSY);
	bad |= expect("rename of the top one", rename("own", "old"), EBUSY);
	bad |= expect("write beside", put("own/state/other", "mine"), 0);
	return bad;
}

static void sbx_own_directories_are_covered(void **state)
{
	const struct share_mount m = {at("cv"), "/w", false};
	struct share_config cfg = {.mounts = &m, .n_mounts = 1, .home = "/nowhere", .log_fd = -1};
	struct scaffold s;
	struct err err = {0};

	assert_int_equal(
		system("mkdir -p cv/own/state/sbx && echo secret > cv/own/state/sbx/key"), 0);
	(void)setenv("XDG_STATE_HOME", at("cv/own/state"), 1);
	(void)setenv("XDG_RUNTIME_DIR", at("cv/own/run"), 1); /* does not exist yet */
	assert_int_equal(scaffold_pin(&cfg, &s, &err), -EPERM);
	cfg.force = true;
	in_guest(&cfg, look_for_the_state);
	assert_int_equal(access(at("cv/own/state/sbx/policy"), F_OK), -1);
	assert_int_equal(access(at("cv/own/state/other"), F_OK), 0);
}

/* Of the history, which is in the state directory, only what the agent owns is shared. */
static void history_is_shared_and_nothing_else_of_the_state(void **state)
{
	struct share_mount m = {at("cv/own/state/sbx/history/x"), "/home/agent/.x", false, true};
	struct share_config cfg = {.mounts = &m, .n_mounts = 1, .home = "/nowhere", .log_fd = -1};
	struct scaffold s;

	assert_int_equal(system("mkdir -p cv/own/state/sbx/history/x"), 0);
	assert_int_equal(scaffold_pin(&cfg, &s, NULL), 0);
	scaffold_done(&s);
	m.own = false;
	assert_int_equal(scaffold_pin(&cfg, &s, NULL), -EACCES);
	m.own = true;
	m.host = at("cv/own/state/sbx/history");
	assert_int_equal(scaffold_pin(&cfg, &s, NULL), -EACCES);
	m.host = at("cv/own/state/sbx");
	assert_int_equal(scaffold_pin(&cfg, &s, NULL), -EACCES);
}

/* ---- the model ---- */

static const char *const names[] = {"a", "a/b", "a/b/pin", "a/b/pin/f", "a/b/x", "a/x", "c", "c/d",
	"c/d/file", "c/d/x", "c/x", "own", "own/state", "own/state/sbx", "own/state/sbx/key",
	"own/state/x", "x", "x/a", "x/b", "x/d", "x/pin", "y", "y/b", "y/b/pin", "y/b/pin/f", "y/d",
	"y/d/file", "y/state", "y/state/sbx", "y/state/sbx/key"};
/* What must stay, on the host. */
static const char *const pinned[] = {"a", "a/b", "a/b/pin", "a/b/pin/f", "c", "c/d", "c/d/file",
	"own", "own/state", "own/state/sbx", "own/state/sbx/key"};
static ino_t inodes[ARRAY_LEN(pinned)];

static const char *any(void)
{
	return names[(size_t)random() % ARRAY_LEN(names)];
}

static void one_operation(void)
{
	static const unsigned flags[] = {0, 0, RENAME_EXCHANGE, RENAME_NOREPLACE};
	const char *x = any(), *y = any();

	switch (random() % 8) {
	case 0:
	case 1:
		(void)!renameat2(AT_FDCWD, x, AT_FDCWD, y, flags[random() % 4]);
		break;
	case 2:
		(void)!link(x, y);
		break;
	case 3:
		(void)!symlink(at("model/secret"), x);
		break;
	case 4:
		(void)!unlink(x);
		break;
	case 5:
		(void)!rmdir(x);
		break;
	case 6:
		(void)!mkdir(x, 0700);
		break;
	default:
		(void)!put(x, "evil");
	}
}

static bool is_good(const char *path)
{
	char text[8] = "";
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && read(fd, text, sizeof(text)) == 4 && memcmp(text, "good", 4) == 0;
}

static const char *find_change(void)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(pinned); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", at("model"), pinned[i]);

		if (lstat(path, &st) < 0 || (inodes[i] && st.st_ino != inodes[i]) ||
			(S_ISREG(st.st_mode) && !is_good(path)))
			return pinned[i];
		inodes[i] = st.st_ino;
	}
	return is_good(at("model/secret")) ? NULL : "secret";
}

static int random_operations(void)
{
	const char *want = getenv("SBX_HOLD_ROUNDS"), *changed = find_change();
	uint64_t rounds = 1000;

	if (want && str_to_u64(want, 1, UINT32_MAX, &rounds) < 0)
		return -1;
	for (uint64_t i = 0; !changed && i < rounds; i++) {
		srandom((unsigned)i);
		for (int k = 0; !changed && k < OPS_PER_ROUND; k++) {
			one_operation();
			changed = find_change();
			if (changed)
				(void)fprintf(stderr, "round %u, operation %d: %s changed\n",
					(unsigned)i, k, changed);
		}
	}
	return changed ? -1 : 0;
}

static void no_sequence_of_operations_changes_what_is_pinned(void **state)
{
	const struct share_mount m[] = {{at("model"), "/w", false},
		{at("model/a/b/pin"), "/w/a/b/pin", true},
		{at("model/c/d/file"), "/w/c/d/file", true},
		{at("model/secret"), "/w/secret", true}};
	struct share_config cfg = {
		.mounts = m, .n_mounts = 4, .home = "/nowhere", .force = true, .log_fd = -1};

	(void)setenv("XDG_STATE_HOME", at("model/own/state"), 1);
	(void)setenv("XDG_RUNTIME_DIR", at("far/run"), 1);
	assert_int_equal(system("mkdir -p model/a/b/pin model/c/d model/own/state/sbx && cd model "
				"&& for f in a/b/pin/f "
				"c/d/file own/state/sbx/key secret; do printf good > $f; done"),
		0);
	in_guest(&cfg, random_operations);
}

static int setup(void **state)
{
	char made[] = "/tmp/sbx-hold.XXXXXX";

	if (!mkdtemp(made) || !realpath(made, dir) || chdir(dir) < 0 || mkdir("root", 0700) < 0)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		static const char *const vars[] = {
			"XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"};

		(void)setenv(vars[i], at("far"), 1);
	}
	return 0;
}

static int teardown(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf '%s'", dir);

	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(renaming_the_parent_does_not_replace_a_read_only_workspace),
		cmocka_unit_test(read_only_here_and_writable_there_is_refused),
		cmocka_unit_test(sbx_own_directories_are_covered),
		cmocka_unit_test(history_is_shared_and_nothing_else_of_the_state),
		cmocka_unit_test(no_sequence_of_operations_changes_what_is_pinned),
	};

	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	/* a change of identity makes a process undumpable, and its /proc root's */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return cmocka_run_group_tests(tests, setup, teardown);
}
