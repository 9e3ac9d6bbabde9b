/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_note - records which process was started as the keeper of a sandbox.
 *
 * How      The spawner writes the pid and the start time of each keeper to a file next to its spec
 *          (keeper_note_save), which a keeper can only read. After a restart of sbxd the process
 *          with that pid and start time is the keeper (keeper_note_open). Its command line and the
 *          kernel's report of the listener at its socket are ignored: a keeper can choose both.
 * Trust    A file in the state directory, written by the spawner; a sbxd that is compromised can
 *          write it too. Reads /proc.
 * Owns     Nothing; the caller owns the pidfd.
 * See      hands_serve.c, keeper_adopt.c, hands_test.c
 */
#include "hands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"

#define MAX_NOTE 64
#define MAX_STAT 4096

/* Clock ticks from boot to the start of the process, from /proc; 0 on an error. They distinguish
 * two processes that had the same number. */
static uint64_t read_start(pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/stat", (int)pid), *text = NULL;
	const char *p;
	size_t n;

	if (file_load(path, MAX_STAT, &text, &n, NULL) < 0)
		return 0;
	/* The name in parentheses may contain anything; the last parenthesis ends the second field.
	 * The start is the 22nd. */
	p = strrchr(text, ')');
	for (unsigned i = 2; p && i < 22; i++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p, NULL, 10) : 0;
}

static char *note_path(const char *id)
{
	AUTO_FREE char *dir = spec_dir(id);

	return xasprintf("%s/keeper", dir);
}

int keeper_note_save(const char *id, pid_t pid, struct err *err)
{
	AUTO_FREE char *dir = spec_dir(id), *path = note_path(id);
	AUTO_FREE char *text = xasprintf("%d %" PRIu64 "\n", (int)pid, read_start(pid));
	int r = paths_make(dir, err);

	return r < 0 ? r : file_save(path, slice_from_str(text), err);
}

int keeper_note_open(const char *id, pid_t *ret_pid)
{
	AUTO_FREE char *path = note_path(id), *text = NULL;
	AUTO_CLOSE int fd = -1;
	uint64_t start = 0;
	int pid = 0;
	size_t n;

	if (file_load(path, MAX_NOTE, &text, &n, NULL) < 0 ||
		sscanf(text, "%d %" SCNu64, &pid, &start) != 2 || pid <= 1 || !start)
		return -ENOENT;
	*ret_pid = pid;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* Opened first, checked second: the pid cannot be reused in between. */
	if (fd < 0 || read_start(pid) != start)
		return -ESRCH;
	return TAKE_FD(fd);
}
