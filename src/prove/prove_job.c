/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"

struct ends {
	int in, out, err; /* the child's */
};

static void become_job(const struct prove_job_spec *spec, struct ends e, pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 1; i < 32; i++)
		(void)signal(i, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, spec->piped ? SIGTERM : SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* Moved away first: each may be one of 0 to 2. */
	int in = fcntl(e.in, F_DUPFD, 10), out = fcntl(e.out, F_DUPFD, 10),
	    err = fcntl(e.err, F_DUPFD, 10);

	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || close_range(3, ~0u, 0) < 0 ||
		chdir(spec->dir ? spec->dir : "/") < 0)
		_exit(127);
	(void)execvpe(spec->argv[0], (char *const *)spec->argv, spec->env ? spec->env : environ);
	(void)fprintf(stderr, "cannot run %s: %s\n", spec->argv[0], strerror(errno));
	_exit(127);
}

static int make_pipe(int *ours, int *theirs, bool we_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ours = fds[we_write ? 1 : 0];
	*theirs = fds[we_write ? 0 : 1];
	return fd_set_nonblock(*ours, true);
}

static int start_job(struct prove_job *j, const struct prove_job_spec *spec)
{
	AUTO_CLOSE int in = -1, out = -1, err = -1;
	pid_t parent = getpid();
	int r = make_pipe(&j->text_fd, &err, false);

	if (r == 0 && spec->piped)
		r = make_pipe(&j->to, &in, true);
	if (r == 0 && spec->piped)
		r = make_pipe(&j->out, &out, false);
	if (r == 0 && !spec->piped) {
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
		r = in < 0 ? -errno : 0;
	}
	if (r < 0)
		return r;
	(void)fflush(NULL);
	j->pid = fork();
	if (j->pid == 0)
		become_job(spec, (struct ends){in, spec->piped ? out : err, err}, parent);
	if (j->pid < 0)
		return -errno;
	j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
	return j->pidfd < 0 ? -errno : 0;
}

int prove_job_start(struct prove_job *j, const struct prove_job_spec *spec, struct err *err)
{
	int r;

	*j = (struct prove_job){.pid = -1, .pidfd = -1, .to = -1, .out = -1, .text_fd = -1};
	j->begun_ms = clock_mono_ms();
	j->late_ms = spec->seconds ? j->begun_ms + spec->seconds * 1000ull : UINT64_MAX;
	r = start_job(j, spec);
	if (r < 0) {
		prove_job_end(j);
		return err_errno(err, r, "cannot start %s", spec->argv[0]);
	}
	return 0;
}

size_t prove_job_poll(const struct prove_job *j, struct pollfd *ret)
{
	size_t n = 0;

	if (!prove_job_runs(j))
		return 0;
	ret[n++] = (struct pollfd){.fd = j->pidfd, .events = POLLIN};
	if (j->text_fd >= 0)
		ret[n++] = (struct pollfd){.fd = j->text_fd, .events = POLLIN};
	return n;
}

int prove_job_wait_ms(const struct prove_job *j)
{
	uint64_t now = clock_mono_ms();

	if (!prove_job_runs(j) || j->late_ms == UINT64_MAX)
		return -1;
	return j->late_ms > now ? (int)MIN(j->late_ms - now, (uint64_t)60000) : 0;
}

static void take_text(struct prove_job *j)
{
	char rest[4096] = {0};
	ssize_t n = 1;

	/* Limited: a program that never stops writing must not block this loop. */
	for (int i = 0; i < 64 && n > 0 && j->text_fd >= 0; i++) {
		size_t room = sizeof(j->text) - j->n;

		n = read(j->text_fd, room ? j->text + j->n : rest, room ? room : sizeof(rest));
		if (n > 0 && room)
			j->n += (size_t)n;
		if (n == 0)
			fd_close(&j->text_fd);
	}
}

bool prove_job_look(struct prove_job *j)
{
	siginfo_t info = {0};

	if (!prove_job_runs(j))
		return j->ended;
	/* Checked before its output is read: then all output before its exit is available. */
	(void)waitid(P_PID, (id_t)j->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	take_text(j);
	if (info.si_pid == j->pid) {
		j->ended = true;
		j->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	} else if (clock_mono_ms() >= j->late_ms) {
		(void)kill(-j->pid, SIGKILL);
		j->ended = true;
		j->status = PROVE_JOB_LATE;
	}
	return j->ended;
}

static void close_all(struct prove_job *j)
{
	fd_close(&j->pidfd);
	fd_close(&j->to);
	fd_close(&j->out);
	fd_close(&j->text_fd);
}

void prove_job_end(struct prove_job *j)
{
	if (j->pid == 0)
		return; /* all zero, or ended before */
	if (j->pid > 0) {
		(void)kill(-j->pid, SIGKILL);
		(void)kill(j->pid, SIGKILL); /* it may not have called setsid yet */
		(void)waitpid(j->pid, NULL, 0);
	}
	close_all(j);
	j->pid = 0;
}

int prove_job_run(struct prove_job *j, const struct prove_job_spec *spec, struct err *err)
{
	int r = prove_job_start(j, spec, err);

	while (r == 0 && !prove_job_look(j)) {
		struct pollfd p[PROVE_JOB_FDS];
		size_t n = prove_job_poll(j, p);

		(void)poll(p, n, prove_job_wait_ms(j));
	}
	prove_job_end(j);
	return r < 0 ? r : j->status;
}
