/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "search_path.h"
#include "ui.h"

#define TICK_MS 200

static volatile sig_atomic_t caught;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int n)
{
	caught = n;
}

static void handle_follow(void (*how)(int))
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction sa = {.sa_handler = how};

		(void)sigaction(signals[i], &sa, NULL);
	}
}

void follow_catch(void)
{
	handle_follow(on_signal);
}

bool follow_caught(void)
{
	return caught != 0;
}

void follow_ignore(void)
{
	handle_follow(SIG_IGN);
}

static void become_follow(const struct follow *f, int pipe_fd)
{
	AUTO_FREE char *path = search_path_make(getenv("PATH"));
	int lines = fcntl(pipe_fd, F_DUPFD, 10);
	int in = f->in_fd >= 0 ? fcntl(f->in_fd, F_DUPFD, 10) : open("/dev/null", O_RDONLY);
	int out = fcntl(f->out_fd >= 0 ? f->out_fd : 2, F_DUPFD, 10);
	bool ok = lines >= 0 && in >= 0 && out >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 &&
		  dup2(lines, f->lines) == f->lines;

	if (ok && f->lines == 1)
		ok = dup2(lines, 2) == 2;
	/* What it writes may be a guest's, without end. */
	if (ok && f->max_bytes)
		ok = setrlimit(RLIMIT_FSIZE, &(struct rlimit){f->max_bytes, f->max_bytes}) == 0;
	if (!ok || setenv("PATH", path, 1) < 0 || close_range(f->lines == 3 ? 4 : 3, ~0u, 0) < 0)
		_exit(127);
	(void)execv(f->argv[0], (char *const *)f->argv);
	(void)fprintf(stderr, "sbx: cannot run %s: %s\n", f->argv[0], strerror(errno));
	_exit(127);
}

struct reader {
	const struct follow *f;
	pid_t pid;
	uint64_t late, since; /* deadline of its exit; when it got SIGTERM */
	char line[FOLLOW_MAX_LINE];
	size_t n;
};

static void end_line(struct reader *r)
{
	r->line[r->n] = '\0';
	ui_clean(r->line);
	if (r->f->fn)
		r->f->fn(r->f->arg, r->line);
	r->n = 0;
}

static void take_follow(struct reader *r, const char *p, size_t n)
{
	for (; n > 0; p++, n--)
		if (*p == '\n' || *p == '\r')
			end_line(r);
		else if (r->n + 1 < sizeof(r->line))
			r->line[r->n++] = *p;
}

/* Terminated after a signal or the timeout; killed if it does not exit. */
static void press_follow(struct reader *r)
{
	uint64_t now = clock_mono_ms();

	if (!caught && now < r->late)
		return;
	if (r->since == 0) {
		r->since = now;
		(void)kill(r->pid, SIGTERM);
	} else if (now - r->since > FOLLOW_END_MS) {
		(void)kill(r->pid, SIGKILL);
	}
}

static void read_lines(struct reader *r, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char buf[4096];
	ssize_t n = 1;

	while (n != 0) {
		int ready = poll(&p, 1, TICK_MS);

		press_follow(r);
		if (ready <= 0)
			continue;
		n = read(fd, buf, sizeof(buf));
		if (n > 0)
			take_follow(r, buf, (size_t)n);
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			break;
	}
	if (r->n > 0)
		end_line(r);
}

/* It has closed its output and exits, or is killed. */
static int wait_for(struct reader *r)
{
	const struct timespec pause = {.tv_nsec = TICK_MS * 100000};
	int status;
	pid_t done;

	while ((done = waitpid(r->pid, &status, WNOHANG)) <= 0) {
		if (done < 0 && errno != EINTR)
			return -errno;
		press_follow(r);
		(void)nanosleep(&pause, NULL);
	}
	if (r->since && !caught)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int follow_run(const struct follow *f, struct err *err)
{
	struct reader r = {.f = f};
	int pipefd[2], status;

	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_errno(err, -errno, "cannot create a pipe");
	(void)fflush(NULL);
	r.late = clock_mono_ms() + (f->max_ms ? f->max_ms : FOLLOW_MAX_MS);
	r.pid = fork();
	if (r.pid == 0)
		become_follow(f, pipefd[1]);
	(void)close(pipefd[1]);
	if (r.pid > 0)
		read_lines(&r, pipefd[0]);
	(void)close(pipefd[0]);
	if (r.pid < 0)
		return err_errno(err, -errno, "cannot start %s", f->argv[0]);
	status = wait_for(&r);
	return status < 0 ? err_errno(err, status, "cannot wait for %s", f->argv[0]) : status;
}
