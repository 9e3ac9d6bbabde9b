/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "session_run.h"

/* The tick of session_run.h gets only the session. */
struct running {
	struct session s;
	struct guest_run *g;
};

static char *read_all(int fd)
{
	char *text = xmalloc(GUEST_RUN_MAX_OUT + 1);
	ssize_t n = pread(fd, text, GUEST_RUN_MAX_OUT, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void on_tick(struct session *s)
{
	struct running *r = (struct running *)s; /* its first member */
	AUTO_FREE char *text = NULL;

	if (!r->g->watch)
		return;
	text = read_all(s->out_fd);
	r->g->watch(r->g->arg, text);
}

static int make_input(struct slice in)
{
	AUTO_CLOSE int fd = memfd_create("in", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = in.n ? fd_write_all(fd, in.p, in.n) : 0;
	if (r < 0)
		return r;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : TAKE_FD(fd);
}

static int say_run(int status, char *text, const char *program, struct problem *p)
{
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	/* the end of the output is most useful */
	if (n > 300)
		return err_set(&p->err, -EIO, "in the sandbox: ...%.*s", 300, text + n - 300);
	if (n > 0)
		return err_set(&p->err, -EIO, "in the sandbox: %.*s", (int)n, text);
	return err_set(&p->err, -EIO, "in the sandbox: %s exited with status %d", program, status);
}

int guest_run(struct guest_run *g, struct problem *p)
{
	char text[4096] = "";
	AUTO_CLOSE int in = make_input(g->in), out = memfd_create("out", MFD_CLOEXEC);
	struct running r = {.g = g,
		.s = {.spec = {.flags = EXEC_F_STDIN,
			      .user = (char *)(g->user ? g->user : ""),
			      .cwd = (char *)"/",
			      .argv = (char **)g->argv},
			.in_fd = in,
			.out_fd = out,
			.err_fd = STDERR_FILENO,
			.err_text = text,
			.err_size = sizeof(text),
			.max_out = GUEST_RUN_MAX_OUT,
			.max_ms = g->max_ms ? g->max_ms : GUEST_RUN_MS,
			.tick = on_tick}};
	sigset_t mask;
	int conn;

	if (in < 0 || out < 0)
		return err_errno(&p->err, in < 0 ? in : -errno, "cannot create a file in memory");
	conn = api_stream(g->ref, API_TIMEOUT_MS, p);
	if (conn < 0)
		return conn;
	/* A session takes over the signals of the program and keeps them: more sessions follow. */
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	g->status = session_run(&r.s, conn, p);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	g->out = read_all(out);
	if (g->status < 0)
		return g->status;
	if (g->status == 128 + SIGINT || g->status == 128 + SIGTERM || g->status == 128 + SIGHUP)
		return err_set(&p->err, -EINTR, "interrupted");
	return g->status == 0 ? 0 : say_run(g->status, text, g->argv[0], p);
}
