/* SPDX-License-Identifier: Apache-2.0 */
#include "edit_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/client/cli/search_path.h"
#include "lib/client/tui/tui.h"

/* Extensions of plain text. Those of projects, archives and encrypted files make an editor do
 * more than show text. */
static const char *copy_name(const char *path)
{
	static const char *const names[] = {"copy.c", "copy.cc", "copy.cmake", "copy.conf",
		"copy.cpp", "copy.css", "copy.go", "copy.gradle", "copy.h", "copy.hpp", "copy.html",
		"copy.java", "copy.js", "copy.json", "copy.jsx", "copy.kt", "copy.lua", "copy.md",
		"copy.mk", "copy.php", "copy.pl", "copy.py", "copy.rb", "copy.rs", "copy.sh",
		"copy.sql", "copy.toml", "copy.ts", "copy.tsx", "copy.xml", "copy.yaml",
		"copy.yml"};
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	for (size_t i = 0; dot && dot != base && i < ARRAY_LEN(names); i++)
		if (strcmp(names[i] + strlen("copy"), dot) == 0)
			return names[i];
	return "copy.txt";
}

/* Read-only: a changed copy would have no effect. */
static int write_copy(const char *dir, const char *name, struct slice content, struct err *err)
{
	AUTO_FREE char *file = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	int r = fd < 0 ? -errno : fd_write_all(fd, content.p, content.n);

	return r < 0 ? err_errno(err, r, "cannot write %s", file) : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	(void)remove(path);
	return 0;
}

/* Editors leave files behind. */
static void remove_copy(char **dir)
{
	if (*dir)
		(void)nftw(*dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(*dir);
}

static const char *find_editor(void)
{
	const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");

	return visual && visual[0] ? visual : editor && editor[0] ? editor : "vi";
}

static void become_editor(const char *dir, const char *name)
{
	const char *editor = find_editor();
	AUTO_FREE char *path = search_path_make(getenv("PATH"));
	AUTO_FREE char *command = xasprintf("exec %s \"$@\"", editor);

	if (chdir(dir) < 0 || setenv("PATH", path, 1) < 0 || setenv("PWD", dir, 1) < 0 ||
		unsetenv("OLDPWD") < 0)
		_exit(127);
	(void)execl("/bin/sh", "sh", "-c", command, "sh", name, NULL);
	_exit(127);
}

/* Ctrl-C and Ctrl-\ are for the editor. */
static int wait_editor(pid_t pid)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
	int status = 0, r;

	(void)sigaction(SIGINT, &ignore, &interrupt);
	(void)sigaction(SIGQUIT, &ignore, &quit);
	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	(void)sigaction(SIGINT, &interrupt, NULL);
	(void)sigaction(SIGQUIT, &quit, NULL);
	return r < 0 ? -errno : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_editor(const char *dir, const char *name, struct err *err)
{
	int status = -EAGAIN;
	pid_t pid;

	tui_pause();
	pid = fork();
	if (pid == 0)
		become_editor(dir, name);
	if (pid > 0)
		status = wait_editor(pid);
	tui_resume();
	if (status < 0)
		return err_errno(err, status, "cannot run the editor");
	return status == 0 ? 0
			   : err_set(err, -ECHILD, "the editor '%s' failed: exit status %d",
				     find_editor(), status);
}

int edit_copy_show(const char *path, struct slice content, struct err *err)
{
	CLEANUP(remove_copy) char *dir = NULL;
	AUTO_FREE char *base = paths_get(PATHS_RUNTIME, NULL);
	AUTO_FREE char *made = xasprintf("%s/review-XXXXXX", base);
	const char *name = copy_name(path);
	int r = paths_make(base, err);

	if (r < 0)
		return r;
	if (!mkdtemp(made))
		return err_errno(err, -errno, "cannot create %s", made);
	dir = TAKE(made);
	r = write_copy(dir, name, content, err);
	return r < 0 ? r : run_editor(dir, name, err);
}
