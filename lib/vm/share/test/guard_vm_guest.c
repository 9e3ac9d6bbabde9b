/* SPDX-License-Identifier: Apache-2.0 */
/* The first program of the VM in guard_vm_test.c: as guest root, tries to plant what programs of
 * the host run, then works with the host's git, which is shared with it. One line a check on the
 * serial port. Static. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "guest_rig.h"

#define W "/mnt/work/"
#define N_BENCH 200

static int tty = -1;

static void say(const char *line)
{
	(void)!write(tty, line, strlen(line));
	(void)!write(tty, "\n", 1);
}

static void check(const char *what, bool ok)
{
	char line[512];

	if (ok)
		(void)snprintf(line, sizeof(line), "pass %s", what);
	else
		(void)snprintf(line, sizeof(line), "FAIL %s (%s)", what, strerrorname_np(errno));
	say(line);
}

/* The call must fail with exactly this. */
static void refuse(const char *what, long r)
{
	if (r >= 0)
		errno = 0;
	check(what, r < 0 && errno == EACCES);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		(void)close(fd);
	return n < 0 ? -1 : 0;
}

static void check_refusals(void)
{
	int fd = open(W ".git/config", O_RDONLY);
	char path[64];

	refuse("write the configuration in place", put(W ".git/config", "x"));
	refuse("truncate it", truncate(W ".git/config", 0));
	refuse("remove it", unlink(W ".git/config"));
	refuse("link it", link(W ".git/config", W "seen"));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	refuse("open it again through its descriptor", open(path, O_WRONLY));
	(void)close(fd);
	refuse("a new hook", put(W ".git/hooks/post-checkout", "#!/bin/sh\n"));
	refuse("the mode of a hook", chmod(W ".git/hooks/pre-commit", 0755));
	refuse("a hook by rename", rename(W "plain", W ".git/hooks/pre-push"));
	refuse("a hook by exchange", syscall(SYS_renameat2, AT_FDCWD, W "plain", AT_FDCWD,
					     W ".git/hooks/pre-commit", 2));
	refuse("the folder of hooks", rename(W ".git/hooks", W "h"));
	refuse("a folder above a repository", rename(W "deep", W "away"));
	refuse("a link named .git", symlink("x", W "sub/.git"));
	check("a folder", mkdir(W "mine", 0755) == 0 && put(W "mine/config", "[core]\n") == 0);
	refuse("a folder that becomes .git", rename(W "mine", W "sub/.git"));
	refuse("a file that direnv runs", put(W ".envrc", "touch /tmp/x\n"));
	refuse("a device's name", mknod(W "x.desktop", S_IFREG | 0755, 0));
	(void)mkdir(W ".claude", 0755);
	refuse("settings of an agent", put(W ".claude/settings.json", "{}"));
	check("a Makefile", put(W "Makefile", "all:\n\ttouch evil\n") == 0);
	check("another file", put(W "plain", "text") == 0 && rename(W "plain", W "plain2") == 0);
	check("reading", access(W ".git/config", R_OK) == 0);
}

/* ---- git ---- */

static int run(const char *dir, const char *command)
{
	static char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"HOME=/root",
		(char *)"GIT_AUTHOR_NAME=a", (char *)"GIT_AUTHOR_EMAIL=a@a",
		(char *)"GIT_COMMITTER_NAME=a", (char *)"GIT_COMMITTER_EMAIL=a@a",
		(char *)"GIT_CONFIG_NOSYSTEM=1", NULL};
	char *const argv[] = {(char *)"sh", (char *)"-ec", (char *)command, NULL};
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		(void)dup2(tty, 1);
		(void)dup2(tty, 2);
		if (chdir(dir) == 0)
			(void)execve("/usr/bin/dash", argv, env);
		_exit(127);
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void git(const char *dir, const char *command)
{
	char line[512];
	int r = run(dir, command);

	(void)snprintf(line, sizeof(line), "%s (%d)", command, r);
	errno = 0;
	check(line, r == 0);
}

static void git_fails(const char *dir, const char *command)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "%s: refused", command);
	errno = 0;
	check(line, run(dir, command) != 0);
}

/* A remote is on a server: what the guest clones from is a folder of the guest. */
static void check_git(bool all)
{
	git("/", "git config --global protocol.file.allow always; "
		 "git config --global --add safe.directory '*'; "
		 "git config --global url./mnt/work/new.insteadOf https://example.org/new; "
		 "git config --global url./mnt/work/copy.insteadOf https://example.org/copy");
	git(W, "git init -q new");
	git(W "new", "test \"$(git config core.filemode)\" = true; echo 1 >f; git add f; "
		     "git commit -qm one; git checkout -qb side");
	git(W, "git clone -q https://example.org/new copy");
	git(W "copy", "git checkout -qb b; git branch -q -u origin/side; "
		      "git remote add o https://example.org/o; git remote remove o");
	git(W "new",
		"git worktree add -q ../tree; cd ../tree; echo 4 >t; git add t; "
		"git commit -qm tree; test \"$(cat ../new/.git/worktrees/tree/commondir)\" = ../..");
	git(W "new", "git worktree add -q ../gone; git worktree remove ../gone");
	git_fails(W "new", "echo ../../../evil >.git/worktrees/tree/commondir");
	git(W "copy", "git submodule --quiet add https://example.org/new sub; git commit -qm sub");
	git(W, "git clone -q https://example.org/copy other");
	git(W "other", "git submodule --quiet update --init; test -s sub/f; "
		       "test \"$(git -C sub log --format=%s)\" = one");
	git_fails(W, "git config core.fsmonitor /tmp/evil");
	git_fails(W "new", "git config core.hooksPath ../mine");
	git(W, "test -z \"$(git config core.fsmonitor)\"");
	if (!all)
		return;
	git(W "new", "echo 3 >g; git add g; git commit -qm three; git checkout -q master; "
		     "echo 2 >f; git commit -qam two; git rebase -q side");
	git(W, "git clone -q --recurse-submodules https://example.org/copy again");
	git(W "again", "echo moved >sub/f; git -C sub commit -qam moved; git commit -qam to; "
		       "git -C sub checkout -q HEAD~1; git submodule --quiet update; "
		       "test \"$(cat sub/f)\" = moved");
	git(W "new", "git gc -q; git tag v1; git stash list; git mv f h; git commit -qm move");
	git(W, "git status --porcelain >/dev/null; git commit -q --allow-empty -m host");
	git(W "sub", "printf 'all:\\n\\techo built >out\\n' >Makefile; make -s; test -s out");
}

/* husky sets core.hooksPath. npm ends well if that is refused; else the hooks are set. */
static void check_husky(bool on)
{
	git("/", "git config --global --add safe.directory '*'");
	git(W, "npm install --offline --cache npm --no-audit --no-fund --foreground-scripts");
	git(W, "test -d node_modules/husky");
	if (on)
		git(W, "test \"$(git config core.hooksPath)\" = .husky/_; "
		       "test -x .husky/_/pre-commit");
	else
		git_fails(W, "git config core.hooksPath");
}

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void bench(void)
{
	char path[64], line[128];
	double t0, t1;

	(void)mkdir(W "many", 0755);
	t0 = seconds();
	for (int i = 0; i < N_BENCH; i++) {
		(void)snprintf(path, sizeof(path), W "many/n%d", i);
		(void)put(path, "x");
	}
	t1 = seconds();
	(void)snprintf(line, sizeof(line), "bench us/create %.0f", (t1 - t0) / N_BENCH * 1e6);
	say(line);
}

static void set_up(void)
{
	static const char *const dirs[] = {"/root", "/tmp", "/etc"};

	(void)umask(022);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		(void)mkdir(dirs[i], 0755);
	tty = guest_rig_start();
	say("");
	check("mount", mount("sbx", "/mnt", "virtiofs", 0, NULL) == 0);
	(void)!symlink("/mnt/host/usr", "/usr");
	(void)!symlink("usr/lib", "/lib");
	(void)!symlink("usr/lib64", "/lib64");
	(void)!symlink("usr/bin", "/bin");
	(void)put("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
}

int main(int argc, char **argv)
{
	bool guard = argc > 1 && strcmp(argv[1], "guard") == 0;

	set_up();
	if (argc > 1 && strcmp(argv[1], "husky") == 0)
		check_husky(argc > 2);
	else
		bench();
	if (guard) {
		check_refusals();
		check_git(argc > 2);
	}
	say("end");
	(void)reboot(RB_POWER_OFF);
	return 0;
}
