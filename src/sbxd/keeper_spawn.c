#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api.h"
#include "child.h"
#include "lib/base/clock.h"
#include "lib/base/keepenv.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/base/str.h"
#include "lib/jail/cgroup.h"
#include "sbxd.h"

#define CHANNEL_FD 3

static bool is_held(const char *id, const char *file)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, file);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	/* Given back at once by the close. */
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool keeper_lock_is_held(const char *id)
{
	return is_held(id, "lock");
}

bool keeper_log_is_held(const char *id)
{
	return is_held(id, "keeper.log");
}

/* The keeper's own output, over all its starts. */
static int open_log(const char *dir, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/keeper.log", dir);
	int fd = child_open_log(path, err);

	/* The child inherits this with its stdout: see keeper_log_is_held. */
	if (fd >= 0)
		(void)flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

/* In the child, between fork and exec. Its own session: no terminal and no group of sbxd's takes it
 * along, and it has a group of its own to be killed by. */
static void become_keeper(const char *program, const char *state, const struct keeper *k,
	int channel, int log_fd, char **env)
{
	const char *const argv[] = {"sbx-keeper", "--id", k->id, state,
		pool_waits(k) ? "--pool"
		: k->cold     ? "--cold"
			      : NULL,
		NULL};
	int null = open("/dev/null", O_RDWR);

	(void)setsid();
	child_reset_signals();
	/* Out of the way first: either may be one of 0 to 3. */
	channel = fcntl(channel, F_DUPFD, 16);
	log_fd = fcntl(log_fd, F_DUPFD, 16);
	if (null < 0 || channel < 0 || log_fd < 0 || dup2(null, 0) < 0 || dup2(log_fd, 1) < 0 ||
		dup2(log_fd, 2) < 0 || dup2(channel, CHANNEL_FD) < 0)
		_exit(126);
	(void)syscall(SYS_close_range, CHANNEL_FD + 1, ~0u, 0);
	(void)execve(program, (char *const *)argv, env);
	(void)!write(2, "sbx-keeper could not be started\n", 32);
	_exit(127);
}

static int start_program(struct keeper *k, int channel, int log_fd, struct err *err)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-keeper");
	AUTO_FREE char *state = child_state_option();
	char *env[KEEPENV_MAX + 1];
	pid_t pid;

	if (access(program, X_OK) < 0)
		return err_errno(err, -errno, "the keeper program %s cannot be run", program);
	(void)keepenv_pick_few(env);
	/* Where no cgroup is delegated the keeper logs it. */
	(void)!jail_cgroup_prepare(NULL, "sbxd", NULL);
	pid = fork();
	if (pid < 0)
		return err_errno(err, -errno, "starting a keeper");
	if (pid == 0)
		become_keeper(program, state, k, channel, log_fd, env);
	k->pid = pid;
	k->child = true;
	k->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (k->pidfd < 0) {
		(void)kill(pid, SIGKILL);
		return err_errno(err, -errno, "watching a keeper");
	}
	return 0;
}

int keeper_make_folders(const struct spec *spec, char **ret_dir, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", spec->id);
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, "s/%s", spec->id);
	AUTO_FREE char *specs = spec_dir(spec->id), *file = spec_path(spec->id);
	AUTO_FREE char *last = xasprintf("%s/last", dir);
	int r = paths_make(dir, err);

	if (r == 0)
		r = paths_make(run, err);
	if (r == 0)
		r = paths_make(specs, err);
	if (r == 0)
		r = spec_save(spec, file, err);
	if (r < 0)
		return r;
	(void)unlink(last);
	*ret_dir = TAKE(dir);
	return 0;
}

static int launch(struct sbxd *d, struct keeper *k, const char *dir, struct err *err)
{
	AUTO_CLOSE int log_fd = open_log(dir, err);
	AUTO_CLOSE int theirs = -1;
	int pair[2], r;

	if (log_fd < 0)
		return log_fd;
	r = ipc_pair(pair);
	if (r < 0)
		return err_errno(err, r, "making a channel");
	k->sock = pair[0];
	theirs = pair[1];
	r = start_program(k, theirs, log_fd, err);
	if (r < 0)
		return r;
	r = keeper_watch_exit(d, k);
	if (r == 0)
		r = keeper_watch_channel(d, k);
	return r < 0 ? err_errno(err, r, "watching a keeper") : 0;
}

static int launch_or_undo(struct sbxd *d, struct keeper *k, const char *dir, struct err *err)
{
	int r = launch(d, k, dir, err);

	if (r < 0) {
		keeper_kill(k);
		if (k->child)
			(void)waitpid(k->pid, NULL, 0);
		keeper_free(d, k);
	}
	return r;
}

int keeper_spawn_pooled(
	struct sbxd *d, const struct spec *spec, const struct pool_seat *seat, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	struct keeper *k;
	int r = keeper_make_folders(spec, &dir, err);

	if (r < 0)
		return r;
	k = keeper_new(d, spec->id);
	if (!k)
		return err_set(err, -ENOSPC, "%d sandboxes run already", KEEPER_MAX);
	k->pool = *seat;
	k->kill_at_ms = clock_mono_ms() + POOL_RESTORE_MS;
	keeper_set_timer(d, k);
	return launch_or_undo(d, k, dir, err);
}

int keeper_spawn(struct sbxd *d, const struct spec *spec, bool cold, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	struct keeper *k;
	int r;

	if (keeper_lock_is_held(spec->id))
		return err_set(err, -EBUSY,
			"the former keeper of %s has not ended yet; try again in a moment",
			spec->name);
	r = keeper_make_folders(spec, &dir, err);
	/* Before the process, so that a crash right after is looked into at the next start. */
	if (r == 0)
		r = store_stamp(d->store, spec->id, STORE_STARTED, clock_wall_ms(), "", err);
	if (r < 0)
		return r;
	k = keeper_new(d, spec->id);
	if (!k)
		return err_set(err, -ENOSPC, "%d sandboxes run already", KEEPER_MAX);
	k->used_stamp_ms = clock_wall_ms();
	k->cold = cold;
	r = launch_or_undo(d, k, dir, err);
	if (r < 0)
		(void)!store_stamp(
			d->store, spec->id, STORE_STOPPED, clock_wall_ms(), err->text, NULL);
	return r;
}
