/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include "src/guest/docker/docker.h"
#include "src/guest/base/base.h"
#include "lib/base/fs/dir.h"
#include "lib/base/mem.h"

#define MAX_DEPTH 8

static uint64_t number_after(const char *text, const char *word)
{
	const char *p = strstr(text, word);

	return p ? strtoull(p + strlen(word), NULL, 10) : 0;
}

static void read_memory(struct keeper_stats *s)
{
	AUTO_FREE char *text = NULL;

	if (file_read("/proc/meminfo", &text) < 0)
		return;
	s->mem_total = number_after(text, "MemTotal:") * 1024;
	s->mem_available = number_after(text, "MemAvailable:") * 1024;
}

/* user, nice, system, (idle, iowait,) irq, softirq of the first line, in hundredths of a second. */
static void read_cpu(struct keeper_stats *s)
{
	AUTO_FREE char *text = NULL;
	char *p;

	if (file_read("/proc/stat", &text) < 0 || strncmp(text, "cpu ", 4) != 0)
		return;
	p = text + 4;
	for (int i = 0; i < 7; i++) {
		uint64_t v = strtoull(p, &p, 10);

		if (i != 3 && i != 4)
			s->cpu_ms += v * 10;
	}
}

static void read_disk(const char *path, uint64_t *ret_total, uint64_t *ret_free)
{
	struct statvfs v;

	if (statvfs(path, &v) < 0)
		return;
	*ret_total = (uint64_t)v.f_blocks * v.f_frsize;
	*ret_free = (uint64_t)v.f_bavail * v.f_frsize;
}

static uint32_t count_lines(const char *path)
{
	AUTO_FREE char *text = NULL;
	uint32_t n = 0;

	if (file_read(path, &text) < 0)
		return 0;
	for (const char *p = text; *p; p++)
		n += *p == '\n';
	return n;
}

/* All groups below the top one, which has only kernel threads. */
static uint32_t count_processes(const char *dir, int depth)
{
	AUTO_DIR DIR *d = depth > MAX_DEPTH ? NULL : opendir(dir);
	struct dirent *e;
	uint32_t n = 0;

	while ((e = dir_next(d))) {
		AUTO_FREE char *sub = NULL;
		AUTO_FREE char *procs = NULL;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		sub = xasprintf("%s/%s", dir, e->d_name);
		procs = xasprintf("%s/cgroup.procs", sub);
		n += count_lines(procs) + count_processes(sub, depth + 1);
	}
	return n;
}

void stats_read(struct keeper_stats *s)
{
	struct timespec up = {0};
	struct stat root, docker;

	*s = (struct keeper_stats){0};
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	s->uptime_ms = (uint64_t)up.tv_sec * 1000 + (uint64_t)up.tv_nsec / 1000000;
	read_cpu(s);
	read_memory(s);
	read_disk("/", &s->disk_total, &s->disk_free);
	if (stat("/", &root) == 0 && stat(DOCKER_DATA, &docker) == 0 &&
		root.st_dev != docker.st_dev)
		read_disk(DOCKER_DATA, &s->docker_total, &s->docker_free);
	s->processes = count_processes("/sys/fs/cgroup", 0);
}
