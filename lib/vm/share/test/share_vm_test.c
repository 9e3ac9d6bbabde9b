/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces in a real VM: share_start, a jailed qemu, share_vm_guest as the guest's init. Needs
 * SBX_TEST_KERNEL (a vmlinuz with virtiofs built in); skipped without. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/share/share.h"
#include "vm_rig.h"

static int n_failed, n_passed;
static char spaces[8][64];
static size_t n_spaces;
static char dir[128] = "/tmp/sbx-share-test-XXXXXX";

static void result(const char *what, bool ok)
{
	printf("%s %s\n", ok ? "pass" : "FAIL", what);
	n_failed += !ok;
	n_passed += ok;
}

static char *at(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void put(const char *name, const char *text, mode_t mode)
{
	AUTO_FREE char *path = at(name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
		abort();
}

static void make_dir(const char *name, mode_t mode)
{
	AUTO_FREE char *path = at(name);

	if (mkdir(path, 0700) < 0 || chmod(path, mode) < 0)
		abort();
}

static void make_tree(void)
{
	AUTO_FREE char *shadow = at("ws/shadow");
	char name[64];

	make_dir("ws", 0755);
	make_dir("ws/open", 0777);
	make_dir("ws/locked", 0755);
	make_dir("ws/sub", 0755);
	make_dir("ws/.envs", 0755);
	make_dir("ws/many", 0755);
	make_dir("data", 0755);
	make_dir("lockdir", 0755);
	make_dir("deep", 0755);
	put("ws/one.txt", "one", 0644);
	put("ws/.env", "SECRET", 0600);
	put("ws/sub/.env.test", "SECRET", 0600);
	put("ws/.envs/inner", "SECRET", 0600);
	put("ws/env", "not hidden", 0600);
	put("ws/from-host", "hello", 0456);
	put("data/f", "data", 0644);
	put("lockdir/f", "locked", 0644);
	put("one", "one", 0644);
	if (symlink("/etc/shadow", shadow) < 0)
		abort();
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "ws/many/f%d", i);
		put(name, "", 0644);
	}
}

/* ---- steps that the guest asks for ---- */

static bool is_ours(const char *name, mode_t mode)
{
	AUTO_FREE char *path = at(name);
	struct stat st;

	if (lstat(path, &st) < 0)
		return false;
	return st.st_uid == geteuid() && st.st_gid == getegid() && (st.st_mode & 07777) == mode;
}

static void verify(void)
{
	AUTO_FREE char *sym = at("ws/sym");
	AUTO_FREE char *mode = at("ws/mode");
	AUTO_FREE char *to = at("ws/to");
	char target[32] = {0};
	struct stat st;

	result("host: guest root's file is the user's", is_ours("ws/root.txt", 0640));
	result("host: another uid's file is the user's", is_ours("ws/open/other.txt", 0604));
	result("host: mode", is_ours("ws/mode", 0751));
	result("host: symlink", readlink(sym, target, 31) == 8 && !strcmp(target, "root.txt"));
	result("host: times", stat(mode, &st) == 0 && st.st_atim.tv_sec == 1000000000 &&
				      st.st_atim.tv_nsec == 123456789 &&
				      st.st_mtim.tv_sec == 1100000000 &&
				      st.st_mtim.tv_nsec == 987654321);
	result("host: renamed", access(to, F_OK) == 0);
}

static int lock_fd = -1;
static struct share share = SHARE_EMPTY;

static void kill_supervisor(void)
{
	put("ws/late", "late", 0600);
	result("host: there is a supervisor", share.hidden.pidfd >= 0);
	jail_child_kill(&share.hidden);
}

static int host_lock(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_SETLK, &l) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -1 : 0;
}

static void lock_take(void)
{
	AUTO_FREE char *path = at("ws/lock");

	lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	result("host: takes its locks", lock_fd >= 0 && host_lock(lock_fd) == 0);
}

static void lock_seen(void)
{
	AUTO_FREE char *path = at("ws/lock");
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	result("host: guest's flock is seen", flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EAGAIN);
	result("host: guest's fcntl lock is seen", fcntl(fd, F_SETLK, &l) < 0 && errno == EAGAIN);
}

static void move(const char *from, const char *to)
{
	AUTO_FREE char *a = at(from);
	AUTO_FREE char *b = at(to);

	put(from, "SECRET 2", 0600);
	if (rename(a, b) < 0)
		abort();
}

static void do_step(const char *step)
{
	if (!strcmp(step, "verify"))
		verify();
	else if (!strcmp(step, "lock-take"))
		lock_take();
	else if (!strcmp(step, "lock-drop"))
		fd_close(&lock_fd);
	else if (!strcmp(step, "lock-seen"))
		lock_seen();
	else if (!strcmp(step, "kill-supervisor"))
		kill_supervisor();
	else if (!strcmp(step, "replace-env"))
		move("ws/.env.tmp-from-editor", "ws/.env");
	else if (!strcmp(step, "move-into-env"))
		move("ws/seen", "ws/.env.moved");
	else
		result(step, false);
}

/* ---- the VM ---- */

static bool on_line(int con, const char *line)
{
	if (!strncmp(line, "host ", 5)) {
		do_step(line + 5);
		if (fd_write_all(con, "\n", 1) < 0)
			result("answering the guest", false);
	} else if (!strncmp(line, "pass ", 5) || !strncmp(line, "FAIL ", 5)) {
		result(line + 5, line[0] == 'p');
	} else if (*line) {
		printf("# %s\n", line);
	}
	return !strcmp(line, "end");
}

static void note_space(const struct jail_child *c)
{
	char path[64];
	ssize_t k;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", c->pid);
	/* Stays open: the number of a namespace that is gone is given to another one. */
	if (open(path, O_RDONLY | O_CLOEXEC) < 0)
		return;
	k = readlink(path, spaces[n_spaces], sizeof(spaces[0]) - 1);
	n_spaces += k > 0;
}

/* Processes in one of the user namespaces that the jails had. */
static int count_processes(void)
{
	DIR *d = opendir("/proc");
	char path[300], ns[64];
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		ssize_t k;

		(void)snprintf(path, sizeof(path), "/proc/%s/ns/user", e->d_name);
		k = readlink(path, ns, sizeof(ns) - 1);
		for (size_t i = 0; k > 0 && i < n_spaces; i++)
			n += strncmp(ns, spaces[i], (size_t)k) == 0;
	}
	if (d)
		(void)closedir(d);
	return n;
}

static void run_vm(const char *kernel, bool hide, bool locks)
{
	AUTO_FREE char *ws = at("ws");
	AUTO_FREE char *data = at("data");
	AUTO_FREE char *locked = at("lockdir");
	AUTO_FREE char *one = at("one");
	AUTO_FREE char *deep = at("deep");
	const struct share_mount mounts[] = {{one, "/work/one.txt", true},
		{locked, "/work/locked", true}, {ws, "/work", false}, {data, "/data", true},
		{deep, "/stub/deep/ws", false}};
	const char *const globs[] = {".env*", "*.pem"};
	struct share_config cfg = {.mounts = mounts,
		.n_mounts = ARRAY_LEN(mounts),
		.hide = globs,
		.n_hide = hide ? ARRAY_LEN(globs) : 0,
		.locks = locks,
		.program = getenv("SBX_TEST_VIRTIOFSD"),
		.log_fd = STDERR_FILENO};
	AUTO_FREE char *initrd = at("initrd");
	AUTO_FREE char *words = xasprintf("%s %s", hide ? "hide" : "-", locks ? "locks" : "-");
	struct jail_child qemu = {.pidfd = -1, .notify_fd = -1};
	struct err err = {0};
	int con[2], r;

	printf("# hide=%d locks=%d\n", hide, locks);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, con) < 0)
		abort();
	r = share_start(&cfg, &share, &err);
	if (r == 0)
		r = vm_rig_start(kernel, initrd, words, share.vhost_fd, con[1], &qemu, &err);
	(void)close(con[1]);
	if (r < 0)
		printf("# %s\n", err_text(&err, r));
	result("virtiofsd and qemu started", r == 0);
	note_space(&share.child);
	note_space(&qemu);
	result("both have a user namespace of their own", count_processes() >= 2);
	if (r == 0)
		result("the guest came to its end", vm_rig_talk(con[0], on_line));
	(void)close(con[0]);
	jail_child_kill(&qemu);
	share_stop(&share);
}

static void remove_tree(void)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf '%s'", dir);

	if (system(cmd) != 0)
		printf("# left behind: %s\n", dir);
}

int main(int argc, char **argv)
{
	const char *kernel = getenv("SBX_TEST_KERNEL");
	int n_runs;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (!kernel || argc < 2 || access(kernel, R_OK) < 0) {
		printf("skipped: SBX_TEST_KERNEL does not name a kernel\n");
		return 77;
	}
	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	/* only the C one can share locks */
	n_runs = access("/usr/lib/qemu/virtiofsd", X_OK) == 0 && !getenv("SBX_TEST_VIRTIOFSD") ? 3
											       : 2;
	for (int i = 0; i < n_runs; i++) {
		(void)strcpy(dir, "/tmp/sbx-share-test-XXXXXX");
		if (!mkdtemp(dir))
			return 1;
		make_tree();
		{
			AUTO_FREE char *initrd = at("initrd");

			vm_rig_make_initrd(initrd, argv[1]);
		}
		run_vm(kernel, i == 1, i == 2);
		remove_tree();
	}
	result("no virtiofsd and no qemu is left",
		n_spaces == (size_t)n_runs * 2 && count_processes() == 0);
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed ? 1 : 0;
}
