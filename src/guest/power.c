#include "power.h"

#include <errno.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "event.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define MAX_MOUNTS 1024
#define MAX_ROUNDS 4

void power_begin(struct power *p, struct loop *loop)
{
	if (p->begun)
		return;
	p->loop = loop;
	p->begun = true;
	/* Stopped programs cannot hear TERM. */
	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
	loop_timer_set(loop, &p->late, clock_mono_ms() + POWER_TERM_MS,
		(struct loop_key){.kind = GUEST_EV_POWER});
}

/* Every process but kernel threads is a descendant, so no child means nobody. */
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

static size_t list_mounts(char **places)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	size_t n = 0;

	while (f && n < MAX_MOUNTS && (m = getmntent(f)))
		places[n++] = xstrdup(m->mnt_dir);
	if (f)
		(void)endmntent(f);
	return n;
}

static bool is_kept(const char *place)
{
	return !strcmp(place, "/") || !strcmp(place, "/proc") || !strcmp(place, "/dev") ||
	       !strcmp(place, "/sys");
}

/* Latest first, a few rounds for those that lie on one another. A share whose server is gone must
 * not hold us up: it is detached, after the disks are synced. */
static void unmount_all(void)
{
	static char *places[MAX_MOUNTS];

	for (int round = 0; round < MAX_ROUNDS; round++) {
		int flags = round + 1 < MAX_ROUNDS ? 0 : MNT_DETACH;
		size_t n = list_mounts(places);
		bool busy = false;

		while (n-- > 0) {
			if (!is_kept(places[n]) && umount2(places[n], flags | UMOUNT_NOFOLLOW) < 0)
				busy = true;
			free(places[n]);
		}
		if (!busy)
			return;
	}
}

void power_off_now(void)
{
	(void)reboot(RB_POWER_OFF);
	(void)reboot(RB_HALT_SYSTEM);
	for (;;)
		(void)pause();
}

void power_finish(void)
{
	kill_all();
	sync();
	unmount_all();
	(void)mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	sync();
	power_off_now();
}
