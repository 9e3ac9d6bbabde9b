/* SPDX-License-Identifier: Apache-2.0 */
/* The process that does what the supervisor decided, and the way to it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/fd.h"

/* A call on its way; the paths are set again from their texts. */
struct ask {
	uint32_t type, op, flags, creates_fd;
	char a[GUARD_PATH_SIZE], b[GUARD_PATH_SIZE], content[PATH_MAX];
};

struct answer {
	int32_t r;
	uint32_t generation;
};

/* ---- the supervisor's side ---- */

int guard_ask_hand(struct guard *g, const struct guard_call *c)
{
	static struct ask ask;
	struct iovec iov = {.iov_base = &ask, .iov_len = sizeof(ask)};
	size_t n_fds = c->fds[0] < 0 ? 0 : c->fds[1] < 0 ? 1 : 2;
	struct answer answer;

	if (g->hand < 0)
		return guard_hand_do(g, c);
	ask.type = c->type;
	ask.op = c->op;
	ask.flags = c->flags;
	ask.creates_fd = c->creates_fd;
	(void)strcpy(ask.a, c->a.text);
	(void)strcpy(ask.b, c->type == GUARD_LINK || c->type == GUARD_RENAME ? c->b.text : "");
	(void)strcpy(ask.content, c->type == GUARD_SYMLINK ? c->content : "");
	if (fd_send(g->hand, &iov, 1, c->fds, n_fds, 0) < 0)
		return -EPIPE;
	if (recv(g->hand, &answer, sizeof(answer), 0) != sizeof(answer))
		return -EPIPE;
	/* The list was begun anew, or it is not known what was recorded. */
	if (answer.r < 0 || answer.generation != g->generation)
		guard_forget(&g->reported);
	g->generation = answer.generation;
	return answer.r;
}

/* ---- the hand's side ---- */

static int take_ask(struct guard *g, const struct ask *ask, struct guard_call *c)
{
	int r;

	c->type = (enum guard_type)ask->type;
	c->op = (enum dirty_op)ask->op;
	c->flags = ask->flags;
	c->creates_fd = ask->creates_fd;
	if (ask->type > GUARD_RENAME || ask->op >= DIRTY_N_OPS ||
		!memchr(ask->a, 0, sizeof(ask->a)) || !memchr(ask->b, 0, sizeof(ask->b)) ||
		!memchr(ask->content, 0, sizeof(ask->content)))
		return -EBADMSG;
	if ((c->type == GUARD_RENAME && c->fds[1] < 0) ||
		(c->type == GUARD_SYMLINK && c->fds[0] < 0))
		return -EBADMSG;
	(void)strcpy(c->content, ask->content);
	r = guard_path_set(g, ask->a, NULL, &c->a);
	if (r == 0 && (c->type == GUARD_LINK || c->type == GUARD_RENAME))
		r = guard_path_set(g, ask->b, NULL, &c->b);
	return r;
}

static int serve_one(struct guard *g)
{
	static struct ask ask;
	static struct guard_call c;
	struct iovec iov = {.iov_base = &ask, .iov_len = sizeof(ask)};
	size_t n_fds = ARRAY_LEN(c.fds);
	struct answer answer;
	ssize_t n;

	c.fds[0] = c.fds[1] = -1;
	n = fd_recv(g->hand, &iov, 1, c.fds, &n_fds, 0);
	if (n == -EINTR)
		return 0;
	if (n != sizeof(ask) || n_fds > ARRAY_LEN(c.fds))
		return -EPIPE;
	answer.r = take_ask(g, &ask, &c);
	if (answer.r == 0)
		answer.r = guard_hand_do(g, &c);
	answer.generation = g->generation;
	fd_close(&c.fds[0]);
	fd_close(&c.fds[1]);
	return send(g->hand, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer) ? 0 : -EPIPE;
}

void guard_hand_main(struct guard *g)
{
	while (serve_one(g) == 0)
		;
	_exit(0);
}
