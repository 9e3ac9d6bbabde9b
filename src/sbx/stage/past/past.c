/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "src/sbx/stage/merge/saved.h"

#define TRASH "trash-"

/* ---- removal ---- */

static void remove_trash(const char *stage)
{
	AUTO_DIR DIR *d = opendir(stage);
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", stage, e->d_name);

		if (str_starts(e->d_name, TRASH))
			area_remove(path);
	}
}

/* Nothing of the command stays open in here, neither its lock nor its output. */
static void run_child(const char *stage)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	(void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	(void)setsid();
	remove_trash(stage);
	_exit(0);
}

/* The child of a child: nobody waits for it. */
static void start_removal(const char *stage)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (fork() == 0)
			run_child(stage);
		_exit(0);
	}
	if (pid < 0)
		remove_trash(stage);
	else
		(void)waitpid(pid, NULL, 0);
}

static bool throw_away(const struct area *a, const char *dir)
{
	AUTO_FREE char *trash = xasprintf("%s/" TRASH "XXXXXX", a->dir);

	/* an empty directory is replaced */
	return mkdtemp(trash) && rename(dir, trash) == 0;
}

void past_remove(const struct area *a, const char *dir)
{
	if (access(dir, F_OK) < 0)
		return;
	if (!throw_away(a, dir))
		area_remove(dir);
	start_removal(a->dir);
}

/* ---- old applies ---- */

static unsigned get_limit(void)
{
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};

	/* without a readable setting nothing is removed */
	return settings_load(&s, &err) < 0 ? 0
					   : (unsigned)settings_get_u64(&s, SETTINGS_STAGE_KEEP);
}

static void keep_bases(const struct area *a, const char *dir)
{
	AUTO_FREE char *base = area_path(a, "base");
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	(void)mkdir(base, 0700);
	while ((e = dir_next(d))) {
		AUTO_FREE char *from = xasprintf("%s/%s", dir, e->d_name),
			       *to = xasprintf("%s/%s", base, e->d_name);

		/* Without it a later conflict may have no base. */
		if (str_starts(e->d_name, SAVED_BASE))
			(void)rename(from, to);
	}
}

/* Oldest first: the base version of the last apply remains. */
void past_trim(const struct area *a, unsigned last)
{
	unsigned limit = get_limit();
	bool found = false;

	for (unsigned i = 1; limit > 0 && i + limit <= last; i++) {
		AUTO_FREE char *dir = xasprintf("%s/undo/%u", a->dir, i),
			       *journal = xasprintf("%s/journal", dir);

		if (access(dir, F_OK) < 0)
			continue;
		(void)unlink(journal);
		keep_bases(a, dir);
		if (!throw_away(a, dir))
			area_remove(dir);
		found = true;
	}
	if (found)
		start_removal(a->dir);
}
