/* SPDX-License-Identifier: Apache-2.0 */
/* Runs parts of probes, one after the other, until its input ends; then removes its directory. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/wire/guestapi/probe_frame.h"
#include "host.h"
#include "src/guest/probe/verb/verb.h"

#define SWEEPS 50
#define FORGOTTEN_S 120
#define FORGOTTEN_TIMES 20
#define TICK_MS 500 /* a signal just before a wait is seen then */

static volatile sig_atomic_t ended;

static void on_signal(int n)
{
	(void)n;
	ended = 1;
}

struct drive {
	const char *folder;
	char dir[256], tool[256]; /* of this part; this program */
	char script[PROBE_FRAME_MAX_SCRIPT + 1];
	uint8_t frame[PROBE_FRAME_HEAD + PROBE_FRAME_MAX_OUT];
	uint8_t *out;
	size_t n_out;
};

static void become_part(const struct drive *d, int out)
{
	int null = open("/dev/null", O_RDONLY);

	(void)setsid();
	for (int i = 1; i < 32; i++)
		(void)signal(i, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (chdir(d->dir) < 0 || setenv("DIR", d->dir, 1) < 0 || setenv("TOOL", d->tool, 1) < 0 ||
		dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
		close_range(3, ~0u, 0) < 0)
		_exit(126);
	(void)execlp("sh", "sh", "-c", d->script, (char *)NULL);
	(void)fprintf(stderr, "cannot run sh: %s\n", strerror(errno));
	_exit(127);
}

/* Reads its output so far; what does not fit is dropped. False at its end. */
static bool take_output(struct drive *d, int fd)
{
	uint8_t rest[4096];
	size_t room = PROBE_FRAME_MAX_OUT - d->n_out;
	ssize_t n = read(fd, room ? d->out + d->n_out : rest, room ? room : sizeof(rest));

	if (n > 0 && room)
		d->n_out += (size_t)n;
	return n > 0;
}

/* Reads all of it, unless a signal or end-of-file comes first. */
static bool read_input(void *buf, size_t n)
{
	for (size_t at = 0; at < n;) {
		struct pollfd p = {.fd = 0, .events = POLLIN};
		ssize_t got = 0;

		if (!ended && poll(&p, 1, TICK_MS) == 0)
			continue;
		got = ended ? 0 : read(0, (uint8_t *)buf + at, n - at);
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			return false;
		at += got > 0 ? (size_t)got : 0;
	}
	return true;
}

/* Waits until the part exits, or the host reports its timeout or disconnects. The host decides:
 * guests booted on a busy host have clocks that run far ahead. The timeout here is only for a
 * forgotten part. */
static uint32_t watch_drive(struct drive *d, pid_t pid, int pidfd, int fd, unsigned seconds)
{
	uint64_t late =
		clock_mono_ms() + (FORGOTTEN_S + FORGOTTEN_TIMES * (uint64_t)seconds) * 1000;
	uint8_t word[PROBE_FRAME_ASK];
	struct pollfd p[] = {{.fd = pidfd, .events = POLLIN}, {.fd = fd, .events = POLLIN},
		{.fd = 0, .events = POLLIN}};
	int status = 0;

	while (!ended) {
		uint64_t now = clock_mono_ms();

		if (now >= late)
			return PROBE_FRAME_LATE;
		if (poll(p, ARRAY_LEN(p), (int)MIN(late - now, (uint64_t)TICK_MS)) < 0 &&
			errno != EINTR)
			return PROBE_FRAME_LATE;
		if ((p[1].revents & (POLLIN | POLLHUP)) && !take_output(d, fd))
			p[1].fd = -1;
		if (p[2].revents) {
			ended = ended || !read_input(word, sizeof(word));
			return PROBE_FRAME_LATE;
		}
		/* Its output first: it is completely in the pipe when it has exited. */
		if ((p[0].revents & POLLIN) && !(p[1].revents & POLLIN) &&
			waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status)
						 : 128 + (uint32_t)WTERMSIG(status);
	}
	return PROBE_FRAME_LATE;
}

/* Processes that a part left behind became our children. */
static void sweep_drive(pid_t pid)
{
	char path[64], text[4096];

	(void)kill(-pid, SIGKILL);
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (int i = 0; i < SWEEPS; i++) {
		AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (n <= 0)
			return;
		text[n] = '\0';
		for (char *at = text, *end; strtol(at, &end, 10) > 0 && end != at; at = end)
			(void)kill((pid_t)strtol(at, NULL, 10), SIGKILL);
		(void)usleep(2000);
	}
}

static void remove_folder(const char *dir)
{
	pid_t pid;

	/* Most are empty, and a process costs more than a system call. */
	if (rmdir(dir) == 0 || errno == ENOENT)
		return;
	pid = fork();
	if (pid == 0) {
		for (const int *n = (const int[]){SIGHUP, SIGINT, SIGTERM, 0}; *n; n++)
			(void)signal(*n, SIG_IGN);
		(void)execlp("rm", "rm", "-rf", "--", dir, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

static uint32_t run_part(struct drive *d, unsigned seconds)
{
	AUTO_CLOSE int pidfd = -1, from = -1, to = -1;
	int fds[2];
	uint32_t status;
	pid_t pid;

	if (mkdir(d->dir, 0700) < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return 126;
	from = fds[0];
	to = fds[1];
	pid = fork();
	if (pid == 0)
		become_part(d, to);
	fd_close(&to);
	pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid < 0)
		return 126;
	if (fd_set_nonblock(from, true) < 0)
		return 126;
	status = watch_drive(d, pid, pidfd, from, seconds);
	sweep_drive(pid);
	remove_folder(d->dir);
	return status;
}

static bool answer_drive(struct drive *d, uint32_t number, uint32_t status)
{
	return !ended && probe_answer_put(d->frame, number, status, d->n_out) == 0 &&
	       fd_write_all(1, d->frame, PROBE_FRAME_HEAD + d->n_out) == 0;
}

/* Serves one request; false at end-of-file. */
static bool serve_drive(struct drive *d)
{
	uint8_t head[PROBE_FRAME_ASK];
	struct probe_ask ask;

	if (!read_input(head, sizeof(head)) || probe_ask_get(head, &ask) < 0 ||
		!read_input(d->script, ask.n_script))
		return false;
	if (ask.seconds == 0)
		return true; /* timeout of a part that has just exited */
	d->script[ask.n_script] = '\0';
	d->n_out = 0;
	(void)snprintf(d->dir, sizeof(d->dir), "%s/%u", d->folder, ask.number);
	return answer_drive(d, ask.number, run_part(d, ask.seconds));
}

int probe_drive(int argc, char **argv)
{
	static struct drive d;
	const struct sigaction stop = {.sa_handler = on_signal};

	if (argc != 1 || strlen(argv[0]) > 200)
		return PROBE_USAGE;
	d.folder = argv[0];
	d.out = d.frame + PROBE_FRAME_HEAD;
	(void)snprintf(d.tool, sizeof(d.tool), "%s/sbx-probe", d.folder);
	for (const int *s = (const int[]){SIGHUP, SIGINT, SIGTERM, 0}; *s; s++)
		(void)sigaction(*s, &stop, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)!nice(10);
	while (!ended && serve_drive(&d))
		;
	remove_folder(d.folder);
	return PROBE_POSSIBLE;
}
