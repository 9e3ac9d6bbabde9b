/* SPDX-License-Identifier: Apache-2.0 */
/* The first program of the VM in share_vm_test.c: as guest root, tries what a workspace must allow
 * and what it must refuse. One line a check on the serial port; "host X" asks the tester for a
 * step on the host. Static. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define W "/mnt/work/"
#define N_BENCH 500

static int tty = -1;

static void say(const char *line)
{
	(void)!write(tty, line, strlen(line));
	(void)!write(tty, "\n", 1);
}

static void check(const char *what, bool ok)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "%s %s", ok ? "pass" : "FAIL", what);
	if (!ok)
		(void)snprintf(line, sizeof(line), "FAIL %s (%s)", what, strerrorname_np(errno));
	say(line);
}

/* The call must fail with exactly this. */
static void refuse(const char *what, long r, int want)
{
	if (r >= 0)
		errno = 0;
	check(what, r < 0 && errno == want);
}

static void host(const char *step)
{
	char line[64], c = 0;

	(void)snprintf(line, sizeof(line), "host %s", step);
	say(line);
	while (read(tty, &c, 1) == 1 && c != '\n')
		;
}

static int put(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	int e = errno;

	(void)close(fd);
	errno = e;
	return n < 0 ? -1 : 0;
}

static bool has(const char *path, const char *text)
{
	char buf[256] = {0};
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return false;
	(void)!read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	return strcmp(buf, text) == 0;
}

static int as_user(uid_t uid, int (*fn)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (setgid(uid) < 0 || setuid(uid) < 0)
			_exit(99);
		_exit(fn());
	}
	(void)waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int put_as_other(void)
{
	return put(W "open/other.txt", "other", 0604) < 0 ? errno : 0;
}

static void check_files(void)
{
	struct timespec t[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
	struct stat st, st2;

	refuse("stub root refuses a file", put("/mnt/x", "x", 0600), EROFS);
	refuse("stub refuses a folder", mkdir("/mnt/stub/x", 0700), EROFS);
	check("stub is empty but for what lies in it", access("/mnt/stub/deep/ws", F_OK) == 0);
	check("guest root writes", put(W "root.txt", "root", 0640) == 0);
	check("another uid writes", as_user(1234, put_as_other) == 0);
	check("chmod", put(W "mode", "x", 0600) == 0 && chmod(W "mode", 0751) == 0);
	check("symlink", symlink("root.txt", W "sym") == 0);
	check("hard link", link(W "root.txt", W "hard") == 0);
	check("times", utimensat(AT_FDCWD, W "mode", t, 0) == 0);
	check("rename", put(W "from", "moved", 0600) == 0 && rename(W "from", W "to") == 0);
	host("verify");
	check("host's file is here", has(W "from-host", "hello"));
	check("host's mode", stat(W "from-host", &st) == 0 && (st.st_mode & 07777) == 0456);
	check("link count", stat(W "root.txt", &st) == 0 && st.st_nlink == 2);
	check("symlink to /etc/shadow is the guest's own", has(W "shadow", "guest shadow"));
	check(".. ends at the guest's root", has(W "../../../../../../etc/shadow", "guest shadow"));
	refuse("chown to a stranger", chown(W "root.txt", 4321, 4321), EINVAL);
	refuse("device node", mknod(W "dev", S_IFBLK | 0600, makedev(254, 0)), EPERM);
	refuse("FIFO", mknod(W "fifo", S_IFIFO | 0600, 0), EPERM);
	refuse("socket", mknod(W "sock", S_IFSOCK | 0600, 0), EPERM);
	check("regular file by mknod", mknod(W "node", S_IFREG | 0600, 0) == 0);
	check("workspaces are file systems of their own",
		stat(W ".", &st) == 0 && stat("/mnt/data", &st2) == 0 && st.st_dev != st2.st_dev);
	refuse("set-user-id by chmod", chmod(W "mode", 04751), EPERM);
	refuse("set-user-id by mknod", mknod(W "suid", S_IFREG | 04751, 0), EPERM);
	refuse("set-user-id by creating", open(W "suid", O_CREAT | O_WRONLY, 04751), EPERM);
	check("set-group-id of a folder",
		chmod(W "open", 02777) == 0 && chmod(W "open", 0777) == 0);
}

static void check_ro(void)
{
	check("read-only workspace reads", has("/mnt/data/f", "data"));
	refuse("read-only: write", put("/mnt/data/f", "x", 0600), EROFS);
	refuse("read-only: create", put("/mnt/data/new", "x", 0600), EROFS);
	refuse("read-only: chmod", chmod("/mnt/data/f", 0777), EROFS);
	refuse("read-only: unlink", unlink("/mnt/data/f"), EROFS);
	refuse("read-only: rename", rename("/mnt/data/f", "/mnt/data/g"), EROFS);
	(void)mount("none", "/mnt", NULL, MS_REMOUNT, NULL);
	(void)mount("none", "/mnt/data", NULL, MS_REMOUNT, NULL);
	(void)mount("/mnt/data", "/bind", NULL, MS_BIND, NULL);
	(void)mount("none", "/bind", NULL, MS_REMOUNT | MS_BIND, NULL);
	refuse("read-only: write after remount rw", put("/mnt/data/f", "x", 0600), EROFS);
	refuse("read-only: write through a bind", put("/bind/f", "x", 0600), EROFS);
	check("read-only folder in a writable one reads", has(W "locked/f", "locked"));
	refuse("read-only folder in a writable one", put(W "locked/f", "x", 0600), EROFS);
	refuse("read-only folder: create", put(W "locked/new", "x", 0600), EROFS);
	check("read-only file in a writable folder reads", has(W "one.txt", "one"));
	refuse("read-only file in a writable folder", put(W "one.txt", "x", 0600), EROFS);
	refuse("read-only file: truncate", truncate(W "one.txt", 0), EROFS);
	refuse("read-only file: chmod", chmod(W "one.txt", 0777), EROFS);
	refuse("read-only file: unlink", unlink(W "one.txt"), EBUSY);
	(void)put(W "evil", "evil", 0600);
	refuse("read-only file: rename over it", rename(W "evil", W "one.txt"), EBUSY);
	check("read-only file is as it was", has(W "one.txt", "one"));
}

static bool lists(const char *dir, const char *name, int want)
{
	DIR *d = opendir(dir);
	int n = 0;
	bool found = false;

	for (struct dirent *e; d && (errno = 0, e = readdir(d)); n++)
		found |= strcmp(e->d_name, name) == 0;
	if (d)
		(void)closedir(d);
	return found && n >= want;
}

static void check_hide(void)
{
	struct stat st;

	refuse("hidden: open", open(W ".env", O_RDONLY), EACCES);
	refuse("hidden: open for writing", open(W ".env", O_WRONLY | O_TRUNC), EACCES);
	refuse("hidden: stat", lstat(W ".env", &st), EACCES);
	refuse("hidden: create a new one", put(W ".env.local", "x", 0600), EACCES);
	refuse("hidden: rename away", rename(W ".env", W "visible"), EACCES);
	refuse("hidden: rename into", rename(W "evil", W ".env"), EACCES);
	refuse("hidden: exchange",
		syscall(SYS_renameat2, AT_FDCWD, W ".env", AT_FDCWD, W "evil", 2), EACCES);
	refuse("hidden: hard link", link(W ".env", W "visible"), EACCES);
	refuse("hidden: link into", link(W "evil", W ".env.x"), EACCES);
	refuse("hidden: unlink", unlink(W ".env"), EACCES);
	refuse("hidden: mkdir", mkdir(W ".env.dir", 0700), EACCES);
	check("symlink to a hidden name", symlink(".env", W "to-env") == 0);
	refuse("hidden: through a symlink", open(W "to-env", O_RDONLY), EACCES);
	refuse("hidden: in a subfolder", open(W "sub/.env.test", O_RDONLY), EACCES);
	refuse("hidden: below a hidden folder", open(W ".envs/inner", O_RDONLY), EACCES);
	host("replace-env");
	refuse("hidden: after the host replaced it by rename", open(W ".env", O_RDONLY), EACCES);
	host("move-into-env");
	refuse("hidden: a file that got the name later", open(W ".env.moved", O_RDONLY), EACCES);
	check("a folder with hidden names can be listed", lists(W, ".env", 8));
	check("other files are not hidden", has(W "env", "not hidden"));
	check("mount again", umount2("/bind", MNT_DETACH) == 0 &&
				     umount2("/mnt", MNT_DETACH) == 0 &&
				     mount("sbx", "/mnt", "virtiofs", 0, NULL) == 0);
	refuse("hidden: after a new mount", open(W ".env", O_RDONLY), EACCES);
}

static int lock_fcntl(int fd, short type, int cmd)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET};

	return fcntl(fd, cmd, &l);
}

/* What the header of share.h says about locks, measured. */
static void check_locks(bool remote)
{
	int fd = open(W "lock", O_RDWR | O_CREAT, 0600);

	host("lock-take");
	if (!remote) {
		check("local locks: the host's lock is not seen",
			flock(fd, LOCK_EX | LOCK_NB) == 0);
		(void)flock(fd, LOCK_UN);
		host("lock-drop");
		check("local locks: flock that may wait", flock(fd, LOCK_EX) == 0);
		check("local locks: F_SETLKW", lock_fcntl(fd, F_WRLCK, F_SETLKW) == 0);
		return;
	}
	refuse("remote locks: host's flock is seen", flock(fd, LOCK_EX | LOCK_NB), EAGAIN);
	refuse("remote locks: host's fcntl lock is seen", lock_fcntl(fd, F_WRLCK, F_SETLK), EAGAIN);
	host("lock-drop");
	check("remote locks: flock", flock(fd, LOCK_EX | LOCK_NB) == 0);
	check("remote locks: fcntl", lock_fcntl(fd, F_WRLCK, F_SETLK) == 0);
	host("lock-seen");
	(void)flock(fd, LOCK_UN);
	refuse("remote locks: flock that may wait is refused", flock(fd, LOCK_EX), EOPNOTSUPP);
	refuse("remote locks: F_SETLKW is refused", lock_fcntl(fd, F_WRLCK, F_SETLKW), EOPNOTSUPP);
}

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Names only: cold lookups after the host made the files, then create + unlink. */
static void bench(void)
{
	char path[64], line[128];
	struct stat st;
	double t0 = seconds(), t1, t2;

	for (int i = 0; i < N_BENCH; i++) {
		(void)snprintf(path, sizeof(path), W "many/f%d", i);
		(void)stat(path, &st);
	}
	t1 = seconds();
	for (int i = 0; i < N_BENCH; i++) {
		(void)snprintf(path, sizeof(path), W "many/n%d", i);
		(void)put(path, "x", 0600);
		(void)unlink(path);
	}
	t2 = seconds();
	(void)snprintf(line, sizeof(line), "bench lookups/s %.0f create+unlink/s %.0f",
		N_BENCH / (t1 - t0), N_BENCH / (t2 - t1));
	say(line);
}

int main(int argc, char **argv)
{
	struct termios raw;
	bool hide = false, locks = false;

	for (int i = 1; i < argc; i++) {
		hide |= strcmp(argv[i], "hide") == 0;
		locks |= strcmp(argv[i], "locks") == 0;
	}
	(void)umask(0);
	for (const char *const *d = (const char *const[]){"/dev", "/mnt", "/bind", "/etc", NULL};
		*d; d++)
		(void)mkdir(*d, 0755);
	(void)mount("dev", "/dev", "devtmpfs", 0, NULL);
	tty = open("/dev/ttyS0", O_RDWR | O_NOCTTY);
	(void)tcgetattr(tty, &raw);
	cfmakeraw(&raw);
	(void)tcsetattr(tty, TCSANOW, &raw);
	(void)put("/etc/shadow", "guest shadow", 0600);
	say("");
	check("mount", mount("sbx", "/mnt", "virtiofs", 0, NULL) == 0);
	check_files();
	check_ro();
	if (hide)
		check_hide();
	check_locks(locks);
	bench();
	if (hide) {
		host("kill-supervisor");
		refuse("without the supervisor no name is found", open(W "late", O_RDONLY), ENOSYS);
	}
	say("end");
	(void)reboot(RB_POWER_OFF);
	return 0;
}
