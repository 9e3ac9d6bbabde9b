/* SPDX-License-Identifier: Apache-2.0 */
#include "git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/cli/ui.h"

#define MAX_ARGS 512

extern char **environ;

struct words {
	const char *v[MAX_ARGS + 1];
	size_t n;
};

static void add_word(struct words *w, const char *word)
{
	if (w->n < MAX_ARGS)
		w->v[w->n++] = word;
}

static void add_words(struct words *w, const char *const *list)
{
	for (; list && *list; list++)
		add_word(w, *list);
}

static void make_args(const struct git_run *g, struct words *w)
{
	static const char *const safe[] = {"--no-pager", "--no-replace-objects", "-c",
		"core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c",
		"maintenance.auto=false", "-c", "protocol.allow=never", "-c",
		"core.splitIndex=false", "-c", "advice.addEmbeddedRepo=false", NULL};

	add_word(w, "git");
	add_words(w, safe);
	if (g->dir) {
		add_word(w, "-C");
		add_word(w, g->dir);
	}
	if (g->git_dir) {
		add_word(w, "--git-dir");
		add_word(w, g->git_dir);
	}
	add_words(w, g->args);
	add_words(w, g->more);
}

static void make_env(const struct git_run *g, struct words *w)
{
	static const char *const own[] = {
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", NULL};

	for (char **e = environ; *e; e++)
		if (!str_starts(*e, "GIT_") && !str_starts(*e, "LC_ALL=") && w->n < MAX_ARGS / 2)
			add_word(w, *e);
	add_words(w, own);
	add_words(w, g->env);
}

static void become_git(const struct git_run *g, int out, int said)
{
	struct words args = {.n = 0}, env = {.n = 0};
	int in = g->in_fd > 0 ? fcntl(g->in_fd, F_DUPFD, 10) : open("/dev/null", O_RDONLY);

	make_args(g, &args);
	make_env(g, &env);
	out = fcntl(out, F_DUPFD, 10);
	said = fcntl(said, F_DUPFD, 10);
	if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(said, 2) < 0 ||
		args.n == MAX_ARGS || env.n == MAX_ARGS || close_range(3, ~0u, 0) < 0)
		_exit(127);
	(void)execve(GIT_PROGRAM, (char *const *)args.v, (char *const *)env.v);
	_exit(127);
}

/* Keeps the line that ended last, or the one that is being written. */
static void take_said(struct git_run *g, const char *p, size_t n)
{
	size_t k = strlen(g->said);

	for (; n > 0; p++, n--) {
		if (k > 0 && g->said[k - 1] == '\n')
			k = 0;
		if (k + 1 < sizeof(g->said))
			g->said[k++] = *p;
		g->said[k] = '\0';
	}
}

static int take_out(struct git_run *g, const char *p, size_t n)
{
	if (g->n_out + n > GIT_RUN_MAX_OUT)
		return -EFBIG;
	g->out = xrealloc(g->out, g->n_out + n + 1);
	memcpy(g->out + g->n_out, p, n);
	g->n_out += n;
	g->out[g->n_out] = '\0';
	return 0;
}

/* Until both are closed. */
static int read_both(struct git_run *g, int out, int said)
{
	struct pollfd p[] = {{.fd = out, .events = POLLIN}, {.fd = said, .events = POLLIN}};
	char buf[16384];
	int r = 0;

	while (r == 0 && (p[0].fd >= 0 || p[1].fd >= 0)) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		for (size_t i = 0; i < 2; i++) {
			ssize_t n =
				p[i].fd >= 0 && p[i].revents ? read(p[i].fd, buf, sizeof(buf)) : -1;

			if (n > 0 && i == 0)
				r = take_out(g, buf, (size_t)n);
			else if (n > 0)
				take_said(g, buf, (size_t)n);
			else if (n == 0)
				p[i].fd = -1;
		}
	}
	return r;
}

static int wait_git(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_pipes(struct git_run *g, int out[2], int said[2])
{
	pid_t pid = fork();
	int r, status;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_git(g, out[1], said[1]);
	fd_close(&out[1]);
	fd_close(&said[1]);
	r = read_both(g, out[0], said[0]);
	fd_close(&out[0]);
	fd_close(&said[0]);
	status = wait_git(pid);
	return r < 0 ? r : status;
}

int git_run(struct git_run *g, struct err *err)
{
	int out[2] = {-1, -1}, said[2] = {-1, -1}, r;

	g->out = xcalloc(1, 1);
	if (access(GIT_PROGRAM, X_OK) < 0)
		return err_errno(err, -errno, "cannot run " GIT_PROGRAM);
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0)
		r = -errno;
	else
		r = run_pipes(g, out, said);
	for (size_t i = 0; i < 2; i++) {
		fd_close(&out[i]);
		fd_close(&said[i]);
	}
	g->said[strcspn(g->said, "\n")] = '\0';
	ui_clean(g->said);
	return r < 0 ? err_errno(err, r, "cannot run git %s", g->args[0]) : r;
}

int git_must(struct git_run *g, const char *what, struct err *err)
{
	int r = git_run(g, err);

	if (r <= 0)
		return r;
	return err_set(err, -EIO, "%s: %s", what, g->said[0] ? g->said : "git failed");
}

char *git_line(const char *dir, const char *git_dir, const char *const *args)
{
	struct git_run g = {.dir = dir, .git_dir = git_dir, .args = args};
	struct err err = {0};
	int r = git_run(&g, &err);

	if (r != 0) {
		free(g.out);
		return NULL;
	}
	while (g.n_out > 0 && g.out[g.n_out - 1] == '\n')
		g.out[--g.n_out] = '\0';
	return g.out;
}
