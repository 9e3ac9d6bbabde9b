/* SPDX-License-Identifier: Apache-2.0 */
#include "cp_between.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/client/api/api.h"
#include "attach.h"
#include "session_run.h"

#define MAX_TEXT 1024

/* What one half ended with. */
struct half {
	int status; /* of the process in the guest, or a negative errno with the problem */
	char text[MAX_TEXT];
	struct problem problem;
};

/* in or out is -1: not used. Output of a guest must not reach the terminal. */
static void run_half(const char *ref, const char *const *argv, int in, int out, uint64_t *ret_bytes,
	struct half *h)
{
	static struct session_link link; /* as in cmd_cp.c */
	struct session s = {.err_text = h->text, .err_size = sizeof(h->text)};
	AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int conn = null < 0 ? err_errno(&h->problem.err, -errno, "cannot open /dev/null")
			    : api_stream(ref, API_TIMEOUT_MS, &h->problem);

	if (conn < 0) {
		h->status = conn;
		return;
	}
	link = attach_link(ref);
	s.link = &link;
	s.spec.flags = (uint8_t)(EXEC_F_BUILTIN | (in >= 0 ? EXEC_F_STDIN : 0));
	s.spec.user = (char *)"root";
	s.spec.cwd = (char *)"/";
	s.spec.argv = (char **)argv;
	s.in_fd = in;
	s.out_fd = out < 0 ? null : out;
	s.err_fd = STDERR_FILENO;
	h->status = session_run(&s, conn, &h->problem);
	*ret_bytes = s.n_in;
}

static pid_t start_pack(const struct cp_between *c, int *ret_archive, int *ret_report)
{
	const char *argv[] = {
		"pack", c->follow ? "-L" : c->src_path, c->follow ? c->src_path : NULL, NULL};
	int archive[2], report[2];
	pid_t pid;

	if (pipe2(archive, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(report, O_CLOEXEC) < 0) {
		(void)close(archive[0]);
		(void)close(archive[1]);
		return -errno;
	}
	pid = fork();
	if (pid == 0) {
		struct half h = {0};
		uint64_t ignored;

		(void)close(archive[0]);
		run_half(c->src_ref, argv, -1, archive[1], &ignored, &h);
		_exit(fd_write_all(report[1], &h, sizeof(h)) < 0);
	}
	(void)close(archive[1]);
	(void)close(report[1]);
	*ret_archive = archive[0];
	*ret_report = report[0];
	return pid < 0 ? -EAGAIN : pid;
}

static int say_half(const char *ref, const struct half *h, struct problem *p)
{
	size_t n = strcspn(h->text, "\n");

	if (h->status < 0) {
		*p = h->problem;
		return h->status;
	}
	if (n > 0)
		return err_set(&p->err, -EIO, "in the sandbox '%s': %.*s", ref,
			(int)MIN(n, (size_t)400), h->text);
	return err_set(&p->err, -EIO, "the copy process in the sandbox '%s' exited with status %d",
		ref, h->status);
}

/* The first failure: a half that stops breaks the pipe of the other one, and a source that fails
 * sends an archive without an end. */
static int judge_halves(const struct cp_between *c, const struct half *src, const struct half *dst,
	struct problem *p)
{
	if (src->status != 0 && src->status != 128 + SIGPIPE)
		return say_half(c->src_ref, src, p);
	if (dst->status != 0)
		return say_half(c->dst_ref, dst, p);
	return src->status ? say_half(c->src_ref, src, p) : 0;
}

int cp_between(const struct cp_between *c, uint64_t *ret_bytes, struct problem *p)
{
	const char *argv[] = {"unpack", c->dst_path, c->as, NULL};
	struct half src = {0}, dst = {0};
	AUTO_CLOSE int archive = -1, report = -1;
	pid_t pid = start_pack(c, &archive, &report);

	if (pid < 0)
		return err_errno(&p->err, (int)pid, "cannot start the copy process");
	run_half(c->dst_ref, argv, archive, -1, ret_bytes, &dst);
	fd_close(&archive);
	if (fd_read_full(report, &src, sizeof(src)) != (ssize_t)sizeof(src)) {
		src = (struct half){.status = -EIO};
		(void)err_set(&src.problem.err, -EIO, "the copy process exited unexpectedly");
	}
	(void)waitpid(pid, NULL, 0);
	return judge_halves(c, &src, &dst, p);
}
