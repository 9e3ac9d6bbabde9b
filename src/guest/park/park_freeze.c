/* SPDX-License-Identifier: Apache-2.0 */
#include "park_freeze.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "src/guest/base/base.h"
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define GROUPS "/sys/fs/cgroup"

int park_freeze_move(pid_t pid, const char *group)
{
	AUTO_FREE char *path = xasprintf("%s/cgroup.procs", group);
	char text[16];

	(void)mkdir(group, 0755);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return file_poke(path, text);
}

/* Writes the freeze switch of every top group except ours. */
static int set_all(const char *text)
{
	AUTO_DIR DIR *d = opendir(GROUPS);
	struct dirent *e;
	int r = d ? 0 : -errno;

	while ((e = dir_next(d))) {
		AUTO_FREE char *group = xasprintf(GROUPS "/%s", e->d_name);
		AUTO_FREE char *path = xasprintf("%s/cgroup.freeze", group);
		int w;

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || !strcmp(group, PARK_GROUP))
			continue;
		w = file_poke(path, text);
		r = w < 0 && w != -ENOENT ? w : r; /* a removed group needs nothing */
	}
	return r;
}

static bool is_frozen(const char *group)
{
	AUTO_FREE char *path = xasprintf("%s/cgroup.events", group);
	AUTO_FREE char *text = NULL;

	return file_read(path, &text) < 0 || strstr(text, "frozen 1") ||
	       strstr(text, "populated 0");
}

static bool are_all_frozen(void)
{
	AUTO_DIR DIR *d = opendir(GROUPS);
	struct dirent *e;
	bool all = d != NULL;

	while (all && (e = dir_next(d))) {
		AUTO_FREE char *group = xasprintf(GROUPS "/%s", e->d_name);

		if (e->d_type == DT_DIR && e->d_name[0] != '.' && strcmp(group, PARK_GROUP) != 0)
			all = is_frozen(group);
	}
	return all;
}

int park_freeze_all(struct err *err)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t end = clock_mono_ms() + PARK_FREEZE_MS;
	int r = set_all("1");

	while (r == 0 && !are_all_frozen()) {
		if (clock_mono_ms() >= end)
			r = -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
	if (r < 0) {
		park_thaw_all();
		return err_errno(err, r, "cannot freeze the guest's programs");
	}
	return 0;
}

void park_thaw_all(void)
{
	(void)!set_all("0");
}
