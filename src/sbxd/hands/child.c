/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/spec/spec.h"

#define MAX_CMDLINE 4096

void child_reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
}

char *child_state_option(void)
{
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);

	return xasprintf("--state=%s", state);
}

bool child_is_keeper(pid_t pid, const char *id)
{
	AUTO_FREE char *path = xasprintf("/proc/%d", (int)pid), *state = child_state_option();
	AUTO_FREE char *file = xasprintf("%s/cmdline", path), *words = NULL;
	bool has_id = false;
	struct stat st;
	size_t n = 0;

	if (stat(path, &st) < 0 || st.st_uid != geteuid() ||
		file_load(file, MAX_CMDLINE, &words, &n, NULL) < 0)
		return false;
	for (size_t at = 0, next; at < n; at = next) {
		next = at + strlen(words + at) + 1;
		if (str_starts(words + at, "--state=") && strcmp(words + at, state) != 0)
			return false;
		if (strcmp(words + at, "--id") == 0 && next < n)
			has_id = id ? strcmp(words + next, id) == 0 : spec_is_id(words + next);
	}
	return has_id;
}

pid_t child_parent_of(pid_t pid)
{
	char path[64];
	AUTO_FREE char *text = NULL;
	const char *p;
	size_t n;
	int ppid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_load(path, 4096, &text, &n, NULL) < 0)
		return 0;
	/* The name in parentheses may contain anything; the last parenthesis ends it. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %*c %d", &ppid) != 1)
		return 0;
	return ppid;
}

int child_open_log(const char *path, struct err *err)
{
	AUTO_FREE char *old = xasprintf("%s.1", path);
	struct stat st;
	int fd;

	if (lstat(path, &st) == 0 && st.st_size > CHILD_MAX_LOG)
		(void)rename(path, old);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_errno(err, -errno, "cannot open %s", path) : fd;
}
