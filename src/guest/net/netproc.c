/* SPDX-License-Identifier: Apache-2.0 */
#include "netproc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "net_main.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"

#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS 10000
#define YOUNG_MS 10000

static const struct loop_key pipe_key = {.kind = GUEST_EV_NET_PIPE};
static const struct loop_key timer_key = {.kind = GUEST_EV_NET_TIMER};

static void __attribute__((noreturn)) become(int pipe)
{
	signals_reset();
	(void)setsid();
	if (pipe == NET_READY_FD ? fd_set_cloexec(pipe, false) < 0 : dup2(pipe, NET_READY_FD) < 0)
		_exit(126);
	execl("/proc/self/exe", NET_PROGRAM, (char *)NULL);
	_exit(127);
}

static void pause_then_start(struct netproc *p)
{
	loop_timer_set(p->loop, &p->again, clock_mono_ms() + p->pause_ms, timer_key);
	p->pause_ms = MIN(p->pause_ms * 2, PAUSE_MAX_MS);
}

static void close_pipe(struct netproc *p)
{
	if (p->pipe >= 0)
		loop_del(p->loop, p->pipe);
	fd_close(&p->pipe);
}

static int start_netproc(struct netproc *p)
{
	AUTO_CLOSE int theirs = -1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	p->pipe = fds[0];
	theirs = fds[1];
	if (loop_add(p->loop, p->pipe, EPOLLIN, pipe_key) < 0) {
		fd_close(&p->pipe);
		return -ENOMEM;
	}
	pid = fork();
	if (pid == 0)
		become(theirs);
	if (pid < 0) {
		int r = -errno;

		close_pipe(p);
		return r;
	}
	p->pid = pid;
	p->started_ms = clock_mono_ms();
	return 0;
}

void netproc_on_timer(struct netproc *p)
{
	int r = p->pid ? 0 : start_netproc(p);

	if (r < 0) {
		log_warn("cannot start " NET_PROGRAM ": %s", strerror(-r));
		pause_then_start(p);
	}
}

void netproc_start(struct netproc *p, struct loop *loop)
{
	*p = (struct netproc){.loop = loop, .pipe = -1, .pause_ms = PAUSE_FIRST_MS};
	netproc_on_timer(p);
}

bool netproc_on_pipe(struct netproc *p)
{
	char c;
	ssize_t n = read(p->pipe, &c, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close_pipe(p);
	p->ready = n == 1;
	return p->ready;
}

bool netproc_on_exit(struct netproc *p, pid_t pid, bool ending)
{
	if (pid == 0 || pid != p->pid)
		return false;
	p->pid = 0;
	p->ready = false;
	close_pipe(p);
	if (ending)
		return true;
	if (clock_mono_ms() - p->started_ms > YOUNG_MS)
		p->pause_ms = PAUSE_FIRST_MS;
	log_warn(NET_PROGRAM " exited: restarting it");
	pause_then_start(p);
	return true;
}
