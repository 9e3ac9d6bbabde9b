/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx. Starts sbx again, with a command. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/daemon.h"
#include "lib/client/tui/tui.h"

/* The child. argv[0] is the path of this program. */
static void become_sbx(const char *path, const char *const *args)
{
	const char *argv[JOB_MAX_ARGS + 2] = {path};

	for (size_t i = 0; i < JOB_MAX_ARGS && args[i]; i++)
		argv[i + 1] = args[i];
	(void)execv(path, (char *const *)argv);
	_exit(127);
}

/* ---- in the background ---- */

/* In its own process group: Ctrl-C closes the view, not the command. */
static void detach_child(int out)
{
	int null = open("/dev/null", O_RDONLY);

	(void)setpgid(0, 0);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
		dup2(out, STDERR_FILENO) < 0)
		_exit(127);
}

int job_start(struct jobs *j, const char *label, const char *const *args, struct err *err)
{
	AUTO_FREE char *path = daemon_own_path();
	struct job *free_one = NULL;
	int ends[2];

	for (size_t i = 0; i < JOB_MAX; i++)
		if (j->v[i].pid == 0)
			free_one = &j->v[i];
	if (!free_one)
		return err_set(err, -EBUSY, "%d commands are running: wait for one", JOB_MAX);
	if (!path || pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, -errno, "cannot start sbx %s", label);
	*free_one = (struct job){.fd = ends[0], .pid = fork()};
	if (free_one->pid == 0) {
		detach_child(ends[1]);
		become_sbx(path, args);
	}
	(void)close(ends[1]);
	if (free_one->pid < 0) {
		free_one->pid = 0;
		fd_close(&free_one->fd);
		return err_errno(err, -EAGAIN, "cannot start sbx %s", label);
	}
	(void)fcntl(free_one->fd, F_SETFL, O_NONBLOCK);
	(void)snprintf(free_one->label, sizeof(free_one->label), "%s", label);
	return 0;
}

static void read_output(struct job *job)
{
	char rest[512] = "";
	ssize_t n;

	do {
		size_t room = sizeof(job->output) - 1 - job->n;

		n = read(job->fd, room ? job->output + job->n : rest, room ? room : sizeof(rest));
		if (n > 0 && room)
			job->n += (size_t)n;
	} while (n > 0);
	job->output[job->n] = '\0';
}

/* The line with the error, or the last line. */
static const char *main_line(char *output)
{
	char *rest = NULL;
	const char *last = "";

	for (char *line = strtok_r(output, "\r\n", &rest); line;
		line = strtok_r(NULL, "\r\n", &rest)) {
		char *error = strstr(line, "error: ");

		if (error)
			return error + strlen("error: ");
		last = line;
	}
	return last;
}

static void report_end(struct job *job, int status, char *buf, size_t size)
{
	const char *line = main_line(job->output);
	bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	(void)snprintf(buf, size, "%s%s: %s", is_good ? "" : "Failed: ", job->label,
		line[0]	  ? line
		: is_good ? "done"
			  : "the command was killed");
}

bool job_poll(struct jobs *j, char *buf, size_t size)
{
	for (size_t i = 0; i < JOB_MAX; i++) {
		struct job *job = &j->v[i];
		int status = 0;

		if (job->pid == 0)
			continue;
		read_output(job);
		if (waitpid(job->pid, &status, WNOHANG) != job->pid)
			continue;
		read_output(job);
		report_end(job, status, buf, size);
		fd_close(&job->fd);
		job->pid = 0;
		return true;
	}
	return false;
}

void jobs_done(struct jobs *j)
{
	for (size_t i = 0; i < JOB_MAX; i++)
		if (j->v[i].pid)
			fd_close(&j->v[i].fd);
	*j = (struct jobs){0};
}

/* ---- on the terminal ---- */

/* Keys that send a signal are for the command. */
static int wait_command(pid_t pid)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
	int status = 0, r;

	(void)sigaction(SIGINT, &ignore, &interrupt);
	(void)sigaction(SIGQUIT, &ignore, &quit);
	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	(void)sigaction(SIGINT, &interrupt, NULL);
	(void)sigaction(SIGQUIT, &quit, NULL);
	return r < 0 ? -errno : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void wait_enter(void)
{
	char byte;
	ssize_t n;

	/* A key that was typed for the command must not hide its last words. */
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	(void)!write(STDOUT_FILENO, "\nPress Enter to return.", strlen("\nPress Enter to return."));
	do
		n = read(STDIN_FILENO, &byte, 1);
	while ((n == 1 && byte != '\n' && byte != '\r') || (n < 0 && errno == EINTR));
}

int job_run(const char *const *args, bool stay, struct err *err)
{
	AUTO_FREE char *path = daemon_own_path();
	int status = -EAGAIN;
	pid_t pid;

	if (!path)
		return err_set(err, -ENOENT, "cannot find the program sbx");
	tui_pause();
	pid = fork();
	if (pid == 0)
		become_sbx(path, args);
	if (pid > 0)
		status = wait_command(pid);
	if (status != 0 || stay)
		wait_enter();
	tui_resume();
	return status < 0 ? err_errno(err, status, "cannot start sbx") : status;
}
