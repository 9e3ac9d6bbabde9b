/* SPDX-License-Identifier: Apache-2.0 */
#include "power.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "src/guest/docker/docker.h"
#include "src/guest/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define MAX_MOUNTS 1024
#define MAX_ROUNDS 4

void power_begin(struct power *p, struct loop *loop)
{
	if (p->begun)
		return;
	p->loop = loop;
	p->begun = true;
	/* Stopped programs cannot handle TERM. */
	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
	loop_timer_set(loop, &p->late, clock_mono_ms() + POWER_TERM_MS,
		(struct loop_key){.kind = GUEST_EV_POWER});
}

/* Every process except kernel threads is a descendant: without a child, none is left. */
bool power_is_quiet(const struct power *p)
{
	siginfo_t info;

	return p->begun && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
	       errno == ECHILD;
}

static void kill_all(void)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t end = clock_mono_ms() + POWER_KILL_MS;
	pid_t pid;

	(void)kill(-1, SIGKILL);
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && clock_mono_ms() < end)
		if (pid == 0)
			(void)nanosleep(&pause, NULL);
}

struct place {
	char *path;
	bool is_share;
};

static size_t list_mounts(struct place *places)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	size_t n = 0;

	while (f && n < MAX_MOUNTS && (m = getmntent(f)))
		places[n++] = (struct place){xstrdup(m->mnt_dir), !strcmp(m->mnt_type, "virtiofs")};
	if (f)
		(void)endmntent(f);
	return n;
}

static bool is_kept(const char *path)
{
	return !strcmp(path, "/") || !strcmp(path, "/proc") || !strcmp(path, "/dev") ||
	       !strcmp(path, "/sys");
}

/* Latest first. Returns false if something was busy. */
static bool unmount_round(bool shares, int flags)
{
	static struct place places[MAX_MOUNTS];
	size_t n = list_mounts(places);
	bool all = true;

	while (n-- > 0) {
		struct place *p = &places[n];

		if (p->is_share == shares && !is_kept(p->path) &&
			umount2(p->path, flags | UMOUNT_NOFOLLOW) < 0)
			all = false;
		free(p->path);
	}
	return all;
}

/* A few rounds for stacked mounts, then the rest is detached. */
static void unmount_all(bool shares)
{
	for (int i = 0; i < MAX_ROUNDS; i++)
		if (unmount_round(shares, i + 1 < MAX_ROUNDS ? 0 : MNT_DETACH))
			return;
}

/* Not sync(2): that would wait for a share whose server has exited. */
static void sync_disk(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)syncfs(fd);
}

void power_off_now(void)
{
	(void)reboot(RB_POWER_OFF);
	(void)reboot(RB_HALT_SYSTEM);
	for (;;)
		(void)pause();
}

/* The shares last: if one hangs, the disks are clean already. */
void power_finish(void)
{
	kill_all();
	sync_disk("/");
	sync_disk(DOCKER_DATA);
	unmount_all(false);
	(void)mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	unmount_all(true);
	power_off_now();
}
