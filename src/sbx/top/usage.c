/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx. Reads /proc and the sizes of files; opens no file of a guest. */
#include "usage.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define NONE SIZE_MAX
#define BLOCK 512 /* the unit of st_blocks */

/* ---- the table of processes ---- */

/* The text of /proc/PID/NAME. False if the process has exited. */
static bool read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

/* The name is in parentheses and can contain parentheses and blanks. */
static bool parse_stat(char *text, struct usage_process *ret)
{
	char *end = strrchr(text, ')');
	uint64_t user, system, of_children_user, of_children_system;
	int64_t resident;
	int parent;

	if (!end || sscanf(end + 1,
			    " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			    " %" SCNu64 " %" SCNu64 " %*d %*d %*d %*d %*u %*u %" SCNd64,
			    &parent, &user, &system, &of_children_user, &of_children_system,
			    &resident) != 6)
		return false;
	ret->parent = parent;
	ret->ticks = user + system + of_children_user + of_children_system;
	ret->pages = resident > 0 ? (uint64_t)resident : 0;
	return true;
}

static void add_process(struct usage_scan *s, pid_t pid)
{
	struct usage_process p = {.pid = pid, .child = NONE, .sibling = NONE};
	char text[1024];

	if (!read_proc(pid, "stat", text, sizeof(text)) || !parse_stat(text, &p))
		return;
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 512;
		s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n++] = p;
}

static int by_pid(const void *a, const void *b)
{
	const struct usage_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static size_t find_process(const struct usage_scan *s, pid_t pid)
{
	const struct usage_process key = {.pid = pid}, *found = NULL;

	if (s->n)
		found = bsearch(&key, s->v, s->n, sizeof(*s->v), by_pid);
	return found ? (size_t)(found - s->v) : NONE;
}

void usage_scan(struct usage_scan *s)
{
	AUTO_DIR DIR *proc = opendir("/proc");
	const struct dirent *e;
	uint64_t pid;

	s->n = 0;
	s->at_us = clock_mono_us();
	while (s->n < USAGE_MAX_PROCESSES && (e = dir_next(proc)))
		if (str_to_u64(e->d_name, 1, INT32_MAX, &pid) == 0)
			add_process(s, (pid_t)pid);
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_pid);
	for (size_t i = 0; i < s->n; i++) {
		size_t parent = find_process(s, s->v[i].parent);

		/* A pid that was used again while the table was read must not make a circle. */
		if (parent == NONE || parent == i)
			continue;
		s->v[i].sibling = s->v[parent].child;
		s->v[parent].child = i;
	}
}

void usage_done(struct usage_scan *s)
{
	free(s->v);
	*s = (struct usage_scan){0};
}

/* ---- one sandbox ---- */

/* Pages that this process has for itself. */
static uint64_t own_pages(const struct usage_process *p)
{
	uint64_t resident, shared;
	char text[256];

	if (!read_proc(p->pid, "statm", text, sizeof(text)) ||
		sscanf(text, "%*u %" SCNu64 " %" SCNu64, &resident, &shared) != 2)
		return 0;
	return resident > shared ? resident - shared : 0;
}

static void add_tree(const struct usage_scan *s, size_t at, pid_t qemu, struct usage *ret)
{
	const struct usage_process *p = &s->v[at];

	if (ret->n_processes == s->n)
		return;
	ret->n_processes++;
	ret->cpu_us += p->ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	ret->memory += (p->pid == qemu ? p->pages : own_pages(p)) * (uint64_t)sysconf(_SC_PAGESIZE);
	for (size_t i = p->child; i != NONE; i = s->v[i].sibling)
		add_tree(s, i, qemu, ret);
}

void usage_of(const struct usage_scan *s, pid_t keeper, pid_t qemu, struct usage *ret)
{
	size_t at = keeper > 0 ? find_process(s, keeper) : NONE;

	*ret = (struct usage){0};
	if (at != NONE)
		add_tree(s, at, qemu, ret);
}

static uint64_t disk_below(int dir_fd, unsigned depth)
{
	AUTO_DIR DIR *d = dir_of(dir_fd);
	uint64_t sum = 0;
	const struct dirent *e;
	struct stat st;

	while ((e = dir_next(d))) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_blocks * BLOCK;
		else if (S_ISDIR(st.st_mode) && depth < USAGE_MAX_DEPTH)
			sum += disk_below(openat(dirfd(d), e->d_name,
						  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				depth + 1);
	}
	return sum;
}

uint64_t usage_disk(const char *id)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);

	return disk_below(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
}
