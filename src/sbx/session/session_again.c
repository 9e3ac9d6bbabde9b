/* SPDX-License-Identifier: Apache-2.0 */
/* A broken stream: checks the sandbox, waits, attaches again. */
#include "session_live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "term.h"

#define CTRL_C 3

static int put_attach(struct live *l)
{
	const struct exec_spec *spec = &l->s->spec;
	struct exec_attach a = {.rows = spec->rows, .cols = spec->cols, .out_at = l->out_at};

	memcpy(a.token, spec->token, EXEC_TOKEN);
	if (!l->started)
		memcpy(a.session, spec->session, sizeof(a.session));
	/* After our notices on a screen that a program draws, all of it is requested again. */
	a.resume = l->started && !(live_is_kept(l) && (l->noticed || l->replay_left));
	return exec_put_attach(&l->to_guest, &a);
}

int live_put_first(struct live *l, struct problem *p)
{
	struct session *s = l->s;
	int r;

	if (s->tty)
		term_size(s->in_fd, &s->spec.rows, &s->spec.cols);
	if (s->attach || l->started)
		r = put_attach(l);
	else
		r = exec_put_spec(&l->to_guest, &s->spec);
	if (r == -EMSGSIZE || r == -ENOBUFS)
		return err_set(
			&p->err, r, "the command line and environment are longer than 64 KiB");
	if (r < 0)
		return err_set(&p->err, r, "cannot encode the command line");
	return 0;
}

/* A raw terminal needs explicit line ends before and after. */
static void notice_again(struct live *l, const char *text)
{
	const char *cr = l->s->tty ? "\r" : "";

	l->noticed = true;
	if (l->s->tty || ui_is_terminal())
		(void)fprintf(stderr, "%s\n%s%s\n%s", cr, text, cr, cr);
}

static int leave_again(struct live *l, int status)
{
	l->drop = true;
	if (live_is_kept(l))
		l->s->left = SESSION_DETACHED;
	return live_end(l, status);
}

/* A signal while there is no connection to send it to. */
static void on_signals(struct live *l)
{
	struct signalfd_siginfo si;

	while (read(l->sigs, &si, sizeof(si)) == (ssize_t)sizeof(si))
		if (si.ssi_signo != SIGWINCH)
			(void)leave_again(l, 128 + (int)si.ssi_signo);
}

/* Keys wake a suspended sandbox, and are then sent to the program; ctrl-c and detach keys leave. */
static int on_keys(struct live *l, struct problem *p)
{
	uint8_t buf[256];
	ssize_t n = read(l->s->in_fd, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0)
		live_type(l, slice_of(buf, (size_t)n));
	if (n <= 0 || l->detaching || memchr(buf, CTRL_C, (size_t)n))
		return leave_again(l, l->detaching ? 0 : 128 + SIGINT);
	return l->s->link->wake(l->s->link->ctx, p);
}

/* Waits for one interval, or until a relevant key. */
static int wait_a_little(struct live *l, bool keys, struct problem *p)
{
	bool typing = keys && l->s->tty && live_wants_input(l);
	struct pollfd pfd[2] = {{.fd = l->sigs, .events = POLLIN},
		{.fd = typing ? l->s->in_fd : -1, .events = POLLIN}};

	if (poll(pfd, 2, SESSION_LOOK_MS) <= 0)
		return 0;
	if (pfd[0].revents)
		on_signals(l);
	return !l->ended && pfd[1].revents ? on_keys(l, p) : 0;
}

static void forget_stream(struct live *l)
{
	fd_close(&l->conn);
	exec_reader_done(&l->reader);
	exec_reader_init(&l->reader, EXEC_FROM_GUEST);
	bufq_done(&l->to_guest);
	bufq_init(&l->to_guest, SESSION_QUEUE);
}

static int open_again(struct live *l, struct problem *p)
{
	struct problem q = {0};
	int r = l->s->link->open(l->s->link->ctx, &q);

	if (r < 0)
		return 0; /* not yet; checked again later */
	l->conn = r;
	l->n_streams++;
	l->suspended = false;
	return live_put_first(l, p);
}

/* Prints one line about the wait. */
static void say_waiting(struct live *l, bool asleep)
{
	if (l->noticed)
		return;
	if (asleep)
		notice_again(
			l, l->s->tty ? "[sbx] The sandbox is suspended. Press a key to resume it, "
				       "ctrl-c to quit."
				     : "[sbx] The sandbox is suspended. Waiting until it resumes.");
	else if (live_is_kept(l) && clock_mono_ms() - l->broke_ms >= SESSION_QUIET_MS)
		notice_again(l, "[sbx] The connection to the sandbox was lost. Reattaching...");
}

/* Whether waiting is pointless. A plain program ends with its stream, unless it was suspended,
 * which is visible a little later than the broken stream. */
static bool is_hopeless(const struct live *l, enum session_where where)
{
	uint64_t ms = clock_mono_ms() - l->broke_ms;

	if (where == SESSION_GONE)
		return true;
	if (where == SESSION_RUNS && !live_is_kept(l) && !l->suspended)
		return ms > SESSION_QUIET_MS;
	if (where == SESSION_CHANGES && l->suspended)
		return ms > SESSION_SUSPEND_MS;
	return where != SESSION_SUSPENDED && ms > SESSION_AGAIN_MS;
}

static int look_again(struct live *l, struct problem *p)
{
	enum session_where where = l->s->link->where(l->s->link->ctx);
	bool asleep = where == SESSION_SUSPENDED;
	int r = 0;

	if (is_hopeless(l, where))
		return live_lost(p, -ECONNRESET);
	if (asleep) {
		l->suspended = true;
		l->broke_ms = clock_mono_ms();
	}
	say_waiting(l, asleep);
	if (where == SESSION_RUNS && (live_is_kept(l) || l->suspended))
		r = open_again(l, p);
	return r == 0 && l->conn < 0 ? wait_a_little(l, asleep, p) : r;
}

int live_again(struct live *l, struct problem *p)
{
	int r = 0;

	/* A program that never began cannot be found again, except a kept session by its name. */
	if (!l->s->link || (!l->started && !live_is_kept(l)))
		return live_lost(p, -ECONNRESET);
	forget_stream(l);
	if (!l->broke_ms)
		l->broke_ms = clock_mono_ms();
	else
		r = wait_a_little(l, false, p); /* it broke again immediately */
	while (r == 0 && l->conn < 0 && !l->ended)
		r = look_again(l, p);
	if (r == 0 && l->conn >= 0)
		l->until = clock_mono_ms() + SESSION_AGAIN_MS;
	return r;
}
