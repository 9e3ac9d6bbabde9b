/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/bufq.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/wire/guestapi/exec_frame.h"
#include "src/sbx/session/session.h"
#include "lib/client/cli/plain.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"

#define LOOK_MS 10000	      /* for an answer */
#define MAX_REPLAY (1u << 20) /* bytes of one; a guest retains 256 KiB */
#define FOLLOW_MS 500	      /* between two of them */

static const struct opt_def opts[] = {
	{'f', "follow", NULL, "keep printing new output until the session exits"},
	{0, "session", "NAME", "session name (default: agent)"},
	{0},
};

struct look {
	const char *ref, *session;
	uint64_t at;   /* position so far */
	uint64_t left; /* of the answer */
	bool answered, ended;
	struct plain plain;
};

static int on_error(const struct look *l, struct slice payload, struct problem *p)
{
	struct slice text;
	uint8_t status;

	if (exec_get_error(payload, &status, &text) < 0)
		return err_set(&p->err, -EPROTO, "protocol error: invalid frame from the sandbox");
	if (status != EXEC_NO_SESSION)
		return err_set(&p->err, -EIO, "%.*s", (int)MIN(text.n, (size_t)200), text.p);
	(void)err_set(
		&p->err, -ESRCH, "session '%s' not found in sandbox '%s'", l->session, l->ref);
	return problem_hint(p, -ESRCH, "sbx inspect %s", l->ref);
}

static int on_frame(struct look *l, const struct exec_frame *f, struct problem *p)
{
	struct exec_attached a;

	if (f->type == EXEC_ERROR)
		return on_error(l, f->payload, p);
	if (f->type == EXEC_ATTACHED && !l->answered && exec_get_attached(f->payload, &a) == 0 &&
		a.replay <= MAX_REPLAY) {
		if (l->at < a.dropped && l->at > 0)
			ui_note("(%llu bytes were not retained)",
				(unsigned long long)(a.dropped - l->at));
		l->answered = true;
		l->at = a.out_at;
		l->left = a.replay;
		l->ended = a.flags & EXEC_AF_ENDED;
		return 0;
	}
	if (f->type != EXEC_REPLAY || f->payload.n == 0 || f->payload.n > l->left)
		return err_set(&p->err, -EPROTO, "protocol error: invalid frame from the sandbox");
	plain_feed(&l->plain, f->payload, stdout);
	l->left -= f->payload.n;
	return 0;
}

static int take_logs(struct look *l, int fd, struct exec_reader *rd, struct problem *p)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	static uint8_t buf[32 * 1024];
	struct exec_frame f;
	struct slice in;
	ssize_t n;
	int r = poll(&pfd, 1, LOOK_MS);

	if (r == 0)
		return err_set(&p->err, -ETIMEDOUT, "sandbox '%s' is not responding", l->ref);
	n = r < 0 ? -1 : read(fd, buf, sizeof(buf));
	if (n < 0)
		return errno == EINTR ? 0 : err_errno(&p->err, -errno, "reading");
	if (n == 0)
		return err_set(&p->err, -EIO, "sandbox '%s' closed the connection", l->ref);
	in = slice_of(buf, (size_t)n);
	while ((r = exec_reader_feed(rd, &in, &f)) == 1) {
		r = on_frame(l, &f, p);
		if (r < 0)
			return r;
	}
	return r < 0 ? err_set(&p->err, -EPROTO, "protocol error: invalid frame from the sandbox")
		     : 0;
}

static int ask_logs(const struct look *l, int fd)
{
	struct exec_attach a = {.look = true, .out_at = l->at};
	struct bufq q;
	struct slice s;
	int r;

	(void)snprintf(a.session, sizeof(a.session), "%s", l->session);
	bufq_init(&q, 256);
	r = exec_put_attach(&q, &a);
	s = bufq_peek(&q);
	if (r == 0)
		r = fd_write_all(fd, s.p, s.n);
	bufq_done(&q);
	return r;
}

/* Queries once and prints the reply. */
static int look_logs(struct look *l, struct problem *p)
{
	AUTO_CLOSE int fd = api_stream(l->ref, API_TIMEOUT_MS, p);
	struct exec_reader rd;
	int r;

	if (fd < 0)
		return fd;
	exec_reader_init(&rd, EXEC_FROM_GUEST);
	l->answered = false;
	l->left = 0;
	r = ask_logs(l, fd);
	if (r < 0)
		(void)err_errno(&p->err, r, "cannot send the request to the sandbox");
	while (r == 0 && (!l->answered || l->left > 0))
		r = take_logs(l, fd, &rd, p);
	exec_reader_done(&rd);
	return r;
}

static int check_logs(const struct look *l, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	int r;

	if (!exec_session_is_valid(l->session))
		return err_set(&p->err, -EINVAL,
			"invalid session name '%s': use a-z, 0-9 and -, at most %d characters",
			l->session, EXEC_MAX_SESSION);
	r = sandbox_get(l->ref, &s, p);
	if (r < 0 || sandbox_is(s, "running"))
		return r;
	(void)err_set(&p->err, -ESRCH, "sandbox '%s' is %s: output is retained only while it runs",
		l->ref, api_str(s, "status"));
	return problem_hint(p, -ESRCH, "sbx start %s", l->ref);
}

static int run_logs(struct opts *o)
{
	const char *session = opts_value(o, "session");
	static struct look l; /* large */
	struct problem p = {0};
	int r;

	l = (struct look){.ref = o->args.v[0], .session = session ? session : ATTACH_AGENT};
	do {
		r = check_logs(&l, &p);
		if (r == 0)
			r = look_logs(&l, &p);
		(void)fflush(stdout);
		if (r < 0 || l.ended || !opts_has(o, "follow"))
			break;
		(void)poll(NULL, 0, FOLLOW_MS);
	} while (!ferror(stdout));
	plain_flush(&l.plain, stdout);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_logs = {
	.name = "logs",
	.group = "sandboxes",
	.args = "SANDBOX",
	.summary = "print the retained output of the agent's session",
	.about =
		"Prints the output of the agent's session as text, without escape sequences. The newest\n"
		"256 KiB are retained while the sandbox runs. Attached terminals are not affected. The\n"
		"output of a session that has exited is kept until a terminal attaches to the session.\n"
		"sbx policy log prints the network requests.",
	.examples = "  sbx logs demo\n  sbx logs -f demo\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_logs,
};
