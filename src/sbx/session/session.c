/* SPDX-License-Identifier: Apache-2.0 */
#include "session_live.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "term.h"

#define TICK_MS 200

enum { FD_CONN, FD_SIGS, FD_IN, FD_OUT, FD_ERR, N_FDS };

static void live_done(struct live **lp)
{
	struct live *l = *lp;

	free(l->in);
	fd_close(&l->conn);
	fd_close(&l->sigs);
	exec_reader_done(&l->reader);
	bufq_done(&l->to_guest);
	bufq_done(&l->to_out);
	bufq_done(&l->to_err);
	free(l);
	term_restore();
}

int live_end(struct live *l, int status)
{
	l->ended = true;
	l->status = status;
	return 0;
}

/* ---- frames of the guest ---- */

/* The answer to ATTACH: it has exited, or the sandbox was restarted since. */
static int no_session(struct live *l, struct slice text, struct problem *p)
{
	(void)err_set(&p->err, -ESRCH, "%.*s", (int)MIN(text.n, (size_t)200), (const char *)text.p);
	ui_clean(p->err.text);
	l->drop = true;
	return live_end(l, -ESRCH);
}

static int on_error_frame(struct live *l, struct slice payload, struct problem *p)
{
	struct slice text;
	uint8_t status;

	if (exec_get_error(payload, &status, &text) < 0)
		return -EBADMSG;
	if (status == EXEC_NO_SESSION)
		return no_session(l, text, p);
	/* sbxd or the keeper: the sandbox does not accept streams now. */
	if (l->started)
		return live_again(l, p);
	(void)snprintf(p->err.text, sizeof(p->err.text),
		"cannot start the command in the sandbox: %.*s", (int)MIN(text.n, (size_t)400),
		(const char *)text.p);
	ui_error("%s", p->err.text);
	return live_end(l, status ? status : EXIT_OURS);
}

static int on_exit_frame(struct live *l, struct slice payload)
{
	bool signalled;
	uint8_t value;

	if (exec_get_exit(payload, &signalled, &value) < 0)
		return -EBADMSG;
	trace_line(TRACE_EXEC, "%s %u", signalled ? "exit by signal" : "exit with status", value);
	return live_end(l, signalled ? 128 + (value & 127) : value);
}

static void keep_error_text(struct live *l, struct slice payload)
{
	size_t have = strlen(l->s->err_text), n = MIN(payload.n, l->s->err_size - have - 1);

	if (payload.n == 0)
		return;
	memcpy(l->s->err_text + have, payload.p, n);
	l->s->err_text[have + n] = '\0';
}

/* Closes it without waiting for the guest. */
static int give_up(struct live *l, int r)
{
	l->drop = true;
	return live_end(l, r);
}

/* A slow start must not look like a failure. */
static void say_starting(struct live *l)
{
	if (!l->s->starting)
		return;
	l->says_starting = dprintf(l->s->out_fd, "starting %s ...", l->s->starting) > 0;
}

/* Removes the line before the program's first output. */
static void end_starting(struct live *l)
{
	static const char erase[] = "\r\033[K";

	if (l->says_starting)
		(void)!write(l->s->out_fd, erase, strlen(erase));
	l->says_starting = false;
}

static int show_session(struct live *l, struct slice payload, struct problem *p)
{
	if (l->n_shown == 0 && payload.n > 0)
		end_starting(l);
	l->n_shown += payload.n;
	if (l->s->max_out && l->n_shown > l->s->max_out) {
		(void)err_set(&p->err, -EFBIG, "the sandbox printed more than %llu bytes",
			(unsigned long long)l->s->max_out);
		return give_up(l, -EFBIG);
	}
	if (live_is_kept(l))
		live_track(l, payload);
	(void)bufq_put(&l->to_out, payload);
	return 0;
}

/* Any complete frame counts. */
static void count_session(struct live *l, struct slice payload)
{
	l->out_at += EXEC_HEADER + payload.n;
	if (l->s->link && l->out_at - l->out_acked >= SESSION_ACK_STEP &&
		exec_put_offset(&l->to_guest, EXEC_ACK, l->out_at) == 0)
		l->out_acked = l->out_at;
}

static int on_started(struct live *l)
{
	l->started = true;
	l->until = l->broke_ms = 0;
	trace_line(TRACE_EXEC, "started");
	return l->s->detach ? live_end(l, 0) : 0;
}

static int on_attached(struct live *l, struct slice payload)
{
	struct exec_attached a;
	bool replay;

	if (exec_get_attached(payload, &a) < 0)
		return -EBADMSG;
	replay = a.flags & EXEC_AF_REPLAY;
	if ((!replay && a.out_at != l->out_at) ||
		live_rewind(l, a.in_taken, a.flags & EXEC_AF_EOF) < 0)
		return -EBADMSG;
	l->out_at = l->out_acked = a.out_at;
	l->replay_left = a.replay;
	if (replay)
		l->screen = (struct screen){0};
	l->noticed = false;
	return on_started(l);
}

static int on_detached(struct live *l, struct slice payload)
{
	enum exec_reason reason;

	if (exec_get_detached(payload, &reason) < 0)
		return -EBADMSG;
	trace_line(TRACE_EXEC, "detached, reason %d", (int)reason);
	if (reason == EXEC_SUSPENDED) {
		l->suspended = true;
		return 0;
	}
	l->s->left = reason == EXEC_ASKED ? SESSION_DETACHED : SESSION_TAKEN_OVER;
	return live_end(l, 0);
}

static int on_taken(struct live *l, struct slice payload)
{
	uint64_t at;
	int r = exec_get_offset(payload, &at);

	return r < 0 ? r : live_on_taken(l, at);
}

static void on_error_text(struct live *l, struct slice payload)
{
	if (l->s->err_text)
		keep_error_text(l, payload);
	else
		(void)bufq_put(&l->to_err, payload);
}

static int on_frame(struct live *l, const struct exec_frame *f, struct problem *p)
{
	switch (f->type) {
	case EXEC_STARTED:
		return on_started(l);
	case EXEC_ATTACHED:
		return on_attached(l, f->payload);
	case EXEC_TAKEN:
		return on_taken(l, f->payload);
	case EXEC_REPLAY:
		l->replay_left -= MIN(l->replay_left, f->payload.n);
		return show_session(l, f->payload, p);
	case EXEC_STDOUT:
		l->s->n_out += f->payload.n;
		count_session(l, f->payload);
		return show_session(l, f->payload, p);
	case EXEC_STDERR:
		on_error_text(l, f->payload);
		count_session(l, f->payload);
		return 0;
	case EXEC_EXIT:
		return on_exit_frame(l, f->payload);
	case EXEC_ERROR:
		return on_error_frame(l, f->payload, p);
	case EXEC_DETACHED:
		return on_detached(l, f->payload);
	default:
		return -EBADMSG;
	}
}

static bool has_room(const struct live *l)
{
	return bufq_space(&l->to_out) >= EXEC_MAX_PAYLOAD + PIECE &&
	       bufq_space(&l->to_err) >= EXEC_MAX_PAYLOAD + PIECE;
}

int live_lost(struct problem *p, int r)
{
	(void)err_set(&p->err, r, "the connection to the sandbox was lost");
	return problem_hint(p, r, "sbx ls");
}

static int on_conn_readable(struct live *l, struct problem *p)
{
	ssize_t n = recv(l->conn, l->buf, sizeof(l->buf), MSG_DONTWAIT);
	struct slice in = slice_of(l->buf, (size_t)MAX(n, 0));
	unsigned stream = l->n_streams;
	struct exec_frame f;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return live_again(l, p);
	/* An ERROR frame can open a new stream: the rest of the buffer is not part of that one. */
	while (!l->ended && l->n_streams == stream &&
		(r = exec_reader_feed(&l->reader, &in, &f)) != 0) {
		if (r > 0)
			r = on_frame(l, &f, p);
		if (r == -EBADMSG)
			return err_set(
				&p->err, r, "protocol error: invalid frame from the sandbox");
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- output to the guest ---- */

static void send_size(struct live *l)
{
	uint16_t rows, cols;

	term_size(l->s->in_fd, &rows, &cols);
	trace_line(TRACE_EXEC, "resize %ux%u", rows, cols);
	if (exec_put_resize(&l->to_guest, rows, cols) < 0)
		ui_debug("cannot send the terminal size: the sandbox is not reading");
}

/* Without a terminal a signal is for the command; a third interrupt is for sbx. */
static void on_signal(struct live *l, int signo)
{
	if (signo == SIGWINCH) {
		if (l->s->tty)
			send_size(l);
		return;
	}
	if (l->s->tty || (signo == SIGINT && ++l->n_interrupts >= 3)) {
		l->drop = true;
		if (live_is_kept(l))
			l->s->left = SESSION_DETACHED;
		(void)live_end(l, 128 + signo);
		return;
	}
	trace_line(TRACE_EXEC, "signal %d", signo);
	if (exec_put_signal(&l->to_guest, (uint8_t)signo) < 0)
		(void)live_end(l, 128 + signo);
	if ((signo == SIGTERM || signo == SIGHUP) && !l->until) {
		l->until = clock_mono_ms() + SESSION_LAST_MS;
		l->status = 128 + signo;
	}
}

static void on_sigs_readable(struct live *l)
{
	struct signalfd_siginfo si;

	while (read(l->sigs, &si, sizeof(si)) == (ssize_t)sizeof(si))
		on_signal(l, (int)si.ssi_signo);
}

/* After POLLOUT a pipe accepts PIPE_BUF bytes without blocking; regular files always accept all. */
static int drain_to(struct live *l, struct bufq *q, int fd)
{
	struct slice s = bufq_peek(q);
	struct stat st;
	size_t most = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? PIECE : 4096;
	ssize_t k = write(fd, s.p, MIN(s.n, most));

	if (k < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (k < 0 && errno == EPIPE) {
		l->drop = true;
		return live_end(l, 128 + SIGPIPE);
	}
	if (k < 0)
		return -errno;
	bufq_consume(q, (size_t)k);
	return 0;
}

static int send_to_guest(struct live *l, struct problem *p)
{
	struct slice s = bufq_peek(&l->to_guest);
	ssize_t k = send(l->conn, s.p, s.n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (k < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (k < 0 && (errno == EPIPE || errno == ECONNRESET)) {
		bufq_consume(&l->to_guest, s.n); /* its last output may still be readable */
		l->in_open = l->in_open && l->s->link;
		return 0;
	}
	if (k < 0)
		return live_lost(p, -errno);
	bufq_consume(&l->to_guest, (size_t)k);
	return 0;
}

/* ---- the loop ---- */

static void set_up_polls(const struct live *l, struct pollfd pfd[N_FDS])
{
	for (int i = 0; i < N_FDS; i++)
		pfd[i] = (struct pollfd){.fd = -1};
	if (!l->ended) {
		pfd[FD_CONN].fd = has_room(l) || bufq_len(&l->to_guest) ? l->conn : -1;
		pfd[FD_CONN].events = (short)((has_room(l) ? POLLIN : 0) |
					      (bufq_len(&l->to_guest) ? POLLOUT : 0));
	}
	pfd[FD_SIGS] = (struct pollfd){.fd = l->sigs, .events = POLLIN};
	if (live_wants_input(l))
		pfd[FD_IN] = (struct pollfd){.fd = l->s->in_fd, .events = POLLIN};
	if (bufq_len(&l->to_out))
		pfd[FD_OUT] = (struct pollfd){.fd = l->s->out_fd, .events = POLLOUT};
	if (bufq_len(&l->to_err))
		pfd[FD_ERR] = (struct pollfd){.fd = l->s->err_fd, .events = POLLOUT};
}

static int handle_polls(struct live *l, const struct pollfd pfd[N_FDS], struct problem *p)
{
	int r = 0;

	if (pfd[FD_SIGS].revents)
		on_sigs_readable(l);
	if (pfd[FD_OUT].revents)
		r = drain_to(l, &l->to_out, l->s->out_fd);
	if (r == 0 && pfd[FD_ERR].revents)
		r = drain_to(l, &l->to_err, l->s->err_fd);
	if (r < 0)
		return err_errno(&p->err, r, "cannot write the command's output");
	if (pfd[FD_CONN].revents & POLLOUT)
		r = send_to_guest(l, p);
	if (r == 0 && !l->ended && pfd[FD_CONN].revents & (POLLIN | POLLHUP | POLLERR) &&
		has_room(l))
		r = on_conn_readable(l, p);
	if (r == 0 && pfd[FD_IN].revents)
		r = live_read_input(l);
	return r;
}

static bool may_be_paused(const struct live *l)
{
	return l->s->link && !l->ended && !l->suspended && !l->broke_ms;
}

static int poll_timeout(const struct live *l)
{
	uint64_t now = clock_mono_ms(), end = l->until ? l->until : UINT64_MAX;

	if (l->last)
		end = MIN(end, l->last);
	if (may_be_paused(l))
		end = MIN(end, l->look_ms);
	if (live_shows_held(l))
		end = MIN(end, l->held_ms);
	if (now >= end)
		return 0;
	if (l->s->tick)
		return TICK_MS;
	return end == UINT64_MAX ? -1 : (int)MIN(end - now, (uint64_t)INT_MAX);
}

/* After data or a check: sets the time of the next check. */
static void look_again(struct live *l, bool came)
{
	l->n_looks = came ? 0 : l->n_looks + 1;
	l->told_paused = l->told_paused && !came;
	l->look_ms =
		clock_mono_ms() +
		(l->n_looks < SESSION_SILENT_OFTEN ? SESSION_SILENT_MS : SESSION_SILENT_LATER_MS);
}

/* A command that waits for a full disk looks like one that hangs: prints a note. */
static void look_if_silent(struct live *l)
{
	if (!may_be_paused(l) || clock_mono_ms() < l->look_ms)
		return;
	if (!l->told_paused && l->s->link->where(l->s->link->ctx) == SESSION_PAUSED) {
		l->told_paused = true;
		ui_warning(
			"the sandbox is paused (disk full): the command continues when the host has free disk space again");
	}
	look_again(l, false);
}

static int on_deadline(struct live *l, struct problem *p)
{
	if (l->detaching) {
		l->s->left = SESSION_DETACHED; /* closing the stream does it too */
		return live_end(l, 0);
	}
	if (l->started && l->status == 0)
		return live_lost(p, -ETIMEDOUT); /* reattached, and no data arrived */
	if (l->started)
		return live_end(l, l->status); /* forwarded, and the program does not exit */
	(void)err_set(&p->err, -ETIMEDOUT,
		"the sandbox did not start the command within %d seconds", SESSION_SPEC_MS / 1000);
	return problem_hint(p, -ETIMEDOUT, "sbx ls");
}

/* Until EXIT was received and everything is written, or the output is closed. */
static bool is_over(const struct live *l)
{
	return l->ended &&
	       (l->drop || l->s->detach || (!bufq_len(&l->to_out) && !bufq_len(&l->to_err)));
}

/* The detach keys are complete: sends everything typed before them first. */
static void ask_to_detach(struct live *l)
{
	if (l->until || l->in_sent < l->in_read)
		return;
	if (exec_put_frame(&l->to_guest, EXEC_DETACH, slice_of("", 0)) == 0)
		l->until = clock_mono_ms() + SESSION_DETACH_MS;
}

static void prepare_session(struct live *l)
{
	/* Before ATTACHED the offset of the input is unknown. */
	if (l->ended || !l->started || l->suspended || l->broke_ms)
		return;
	live_send_input(l);
	if (l->detaching)
		ask_to_detach(l);
}

static int loop_session(struct live *l, struct problem *p)
{
	while (!is_over(l)) {
		struct pollfd pfd[N_FDS];
		int r;

		prepare_session(l);
		set_up_polls(l, pfd);
		r = poll(pfd, N_FDS, poll_timeout(l));
		if (r < 0 && errno != EINTR)
			return err_errno(&p->err, -errno, "waiting");
		if (l->last && clock_mono_ms() >= l->last && !l->ended) {
			(void)err_set(&p->err, -ETIMEDOUT,
				"the command in the sandbox did not exit within %llu seconds",
				(unsigned long long)l->s->max_ms / 1000);
			(void)give_up(l, -ETIMEDOUT);
			return l->status;
		}
		if (l->until && clock_mono_ms() >= l->until && !l->ended) {
			r = on_deadline(l, p);
			if (r < 0)
				return r;
		}
		if (l->s->tick)
			l->s->tick(l->s);
		if (r > 0 && (pfd[FD_CONN].revents & POLLIN))
			look_again(l, true);
		look_if_silent(l);
		live_show_held(l);
		r = r > 0 ? handle_polls(l, pfd, p) : 0;
		if (r < 0)
			return r;
	}
	return l->status;
}

static int open_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		(void)sigaddset(&set, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int begin_session(struct live *l, struct problem *p)
{
	struct session *s = l->s;
	int r;

	l->last = s->max_ms ? clock_mono_ms() + s->max_ms : 0;
	l->sigs = open_signals();
	if (l->sigs < 0)
		return err_errno(&p->err, l->sigs, "cannot receive signals");
	if (s->link && getrandom(s->spec.token, EXEC_TOKEN, 0) != EXEC_TOKEN)
		return err_set(&p->err, -EIO, "cannot get random numbers from the kernel");
	if (s->link)
		s->spec.flags |= EXEC_F_RESUME;
	r = live_put_first(l, p);
	if (r < 0)
		return r;
	trace_line(TRACE_EXEC, "open, %s", s->tty ? "with a terminal" : "without a terminal");
	look_again(l, true);
	say_starting(l);
	return s->tty ? term_raw(s->in_fd, &p->err) : 0;
}

/* Resets the terminal for the shell, if the program that changed it continues elsewhere. */
static void tidy_up(struct live *l, int r)
{
	struct bufq q;
	struct slice text;

	if (!live_is_kept(l) || (r >= 0 && !l->s->left))
		return;
	bufq_init(&q, SCREEN_MAX_START);
	screen_put_undo(&l->screen, &q);
	text = bufq_peek(&q);
	(void)!write(l->s->out_fd, text.p, text.n);
	(void)!write(l->s->out_fd, "\r\n", 2);
	bufq_done(&q);
}

int session_run(struct session *s, int conn, struct problem *p)
{
	CLEANUP(live_done) struct live *l = xcalloc(1, sizeof(*l));
	int r;

	l->s = s;
	l->conn = conn;
	l->sigs = -1;
	l->in = xmalloc(SESSION_QUEUE);
	live_type(l, s->first);
	l->in_open = s->in_fd >= 0 && s->spec.flags & EXEC_F_STDIN;
	l->until = clock_mono_ms() + SESSION_SPEC_MS;
	exec_reader_init(&l->reader, EXEC_FROM_GUEST);
	bufq_init(&l->to_guest, SESSION_QUEUE);
	bufq_init(&l->to_out, SESSION_QUEUE);
	bufq_init(&l->to_err, SESSION_QUEUE);
	r = begin_session(l, p);
	if (r == 0)
		r = loop_session(l, p);
	end_starting(l);
	live_hide_held(l);
	tidy_up(l, r);
	trace_line(TRACE_EXEC, "close");
	return r;
}
