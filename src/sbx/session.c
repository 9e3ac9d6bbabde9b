#include "session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/mem.h"
#include "term.h"
#include "verb.h"

#define TICK_MS 200
#define PIECE 32768u

/* One open session: SPEC sent, STARTED awaited, bytes, EXIT; then the queues run empty. */
struct live {
	struct session *s;
	int conn, sigs;
	struct exec_reader reader;
	struct bufq to_guest, to_out, to_err;
	bool in_open, started, ended;
	bool drop; /* nobody takes the output any more */
	int status;
	uint64_t until; /* 0: no end in sight */
	unsigned n_interrupts;
	uint8_t buf[PIECE];
};

enum { FD_CONN, FD_SIGS, FD_IN, FD_OUT, FD_ERR, N_FDS };

static void live_done(struct live **lp)
{
	struct live *l = *lp;

	fd_close(&l->conn);
	fd_close(&l->sigs);
	exec_reader_done(&l->reader);
	bufq_done(&l->to_guest);
	bufq_done(&l->to_out);
	bufq_done(&l->to_err);
	free(l);
	term_restore();
}

static int end_with(struct live *l, int status)
{
	l->ended = true;
	l->status = status;
	return 0;
}

/* ---- what the guest says ---- */

static int on_error_frame(struct live *l, struct slice payload, struct problem *p)
{
	struct slice text;
	uint8_t status;

	if (exec_get_error(payload, &status, &text) < 0)
		return -EBADMSG;
	(void)snprintf(p->err.text, sizeof(p->err.text), "the sandbox could not start it: %.*s",
		(int)MIN(text.n, (size_t)400), (const char *)text.p);
	ui_error("%s", p->err.text);
	return end_with(l, status ? status : EXIT_OURS);
}

static int on_exit_frame(struct live *l, struct slice payload)
{
	bool signalled;
	uint8_t value;

	if (exec_get_exit(payload, &signalled, &value) < 0)
		return -EBADMSG;
	return end_with(l, signalled ? 128 + (value & 127) : value);
}

static void keep_error_text(struct live *l, struct slice payload)
{
	size_t have = strlen(l->s->err_text), n = MIN(payload.n, l->s->err_size - have - 1);

	if (payload.n == 0)
		return;
	memcpy(l->s->err_text + have, payload.p, n);
	l->s->err_text[have + n] = '\0';
}

static int on_frame(struct live *l, const struct exec_frame *f, struct problem *p)
{
	switch (f->type) {
	case EXEC_STARTED:
		l->started = true;
		l->until = 0;
		return l->s->detach ? end_with(l, 0) : 0;
	case EXEC_STDOUT:
		l->s->n_out += f->payload.n;
		(void)bufq_put(&l->to_out, f->payload);
		return 0;
	case EXEC_STDERR:
		if (l->s->err_text)
			keep_error_text(l, f->payload);
		else
			(void)bufq_put(&l->to_err, f->payload);
		return 0;
	case EXEC_EXIT:
		return on_exit_frame(l, f->payload);
	case EXEC_ERROR:
		return on_error_frame(l, f->payload, p);
	default:
		return -EBADMSG;
	}
}

static bool has_room(const struct live *l)
{
	return bufq_space(&l->to_out) >= EXEC_MAX_PAYLOAD + PIECE &&
	       bufq_space(&l->to_err) >= EXEC_MAX_PAYLOAD + PIECE;
}

static int say_lost(struct problem *p, int r)
{
	(void)err_set(&p->err, r, "the connection to the sandbox was lost");
	return problem_hint(p, r, "sbx ls");
}

static int on_conn_readable(struct live *l, struct problem *p)
{
	ssize_t n = recv(l->conn, l->buf, sizeof(l->buf), MSG_DONTWAIT);
	struct slice in = slice_of(l->buf, (size_t)MAX(n, 0));
	struct exec_frame f;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return say_lost(p, -ECONNRESET);
	while (!l->ended && (r = exec_reader_feed(&l->reader, &in, &f)) != 0) {
		if (r > 0)
			r = on_frame(l, &f, p);
		if (r < 0)
			return err_set(
				&p->err, r, "the sandbox said something that makes no sense");
	}
	return 0;
}

/* ---- what goes to it ---- */

static int on_in_readable(struct live *l)
{
	size_t room = bufq_space(&l->to_guest), n = MIN(room - EXEC_HEADER, (size_t)PIECE);
	ssize_t k = read(l->s->in_fd, l->buf, n);

	if (k < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (k > 0) {
		l->s->n_in += (uint64_t)k;
		(void)exec_put_data(&l->to_guest, EXEC_STDIN, slice_of(l->buf, (size_t)k));
		return 0;
	}
	l->in_open = false; /* a read error ends the input too: what came is what there is */
	return exec_put_frame(&l->to_guest, EXEC_STDIN_EOF, slice_of("", 0));
}

static void send_size(struct live *l)
{
	uint16_t rows, cols;

	term_size(l->s->in_fd, &rows, &cols);
	if (exec_put_resize(&l->to_guest, rows, cols) < 0)
		ui_debug("the new size of the terminal was not sent: the sandbox does not read");
}

/* Without a terminal a signal is the command's; a third interrupt is ours. */
static void on_signal(struct live *l, int signo)
{
	if (signo == SIGWINCH) {
		if (l->s->tty)
			send_size(l);
		return;
	}
	if (l->s->tty || (signo == SIGINT && ++l->n_interrupts >= 3)) {
		l->drop = true;
		(void)end_with(l, 128 + signo);
		return;
	}
	if (exec_put_signal(&l->to_guest, (uint8_t)signo) < 0)
		(void)end_with(l, 128 + signo);
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

/* After POLLOUT a pipe takes PIPE_BUF bytes without blocking; plain files always take all. */
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
		return end_with(l, 128 + SIGPIPE);
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
		bufq_consume(&l->to_guest, s.n); /* its last words may still be readable */
		l->in_open = false;
		return 0;
	}
	if (k < 0)
		return say_lost(p, -errno);
	bufq_consume(&l->to_guest, (size_t)k);
	return 0;
}

/* ---- the loop ---- */

static void set_up_polls(const struct live *l, struct pollfd pfd[N_FDS])
{
	bool more_in = l->in_open && !l->ended && bufq_space(&l->to_guest) > PIECE / 2;

	for (int i = 0; i < N_FDS; i++)
		pfd[i] = (struct pollfd){.fd = -1};
	if (!l->ended) {
		pfd[FD_CONN].fd = has_room(l) || bufq_len(&l->to_guest) ? l->conn : -1;
		pfd[FD_CONN].events = (short)((has_room(l) ? POLLIN : 0) |
					      (bufq_len(&l->to_guest) ? POLLOUT : 0));
	}
	pfd[FD_SIGS] = (struct pollfd){.fd = l->sigs, .events = POLLIN};
	if (more_in)
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
		return err_errno(&p->err, r, "writing the command's output");
	if (pfd[FD_CONN].revents & POLLOUT)
		r = send_to_guest(l, p);
	if (r == 0 && !l->ended && pfd[FD_CONN].revents & (POLLIN | POLLHUP | POLLERR) &&
		has_room(l))
		r = on_conn_readable(l, p);
	if (r == 0 && pfd[FD_IN].revents)
		r = on_in_readable(l);
	return r;
}

static int poll_timeout(const struct live *l)
{
	uint64_t now = clock_mono_ms();
	int most = l->s->tick ? TICK_MS : -1;

	if (!l->until)
		return most;
	if (now >= l->until)
		return 0;
	return most >= 0 ? most : (int)(l->until - now);
}

static int on_deadline(struct live *l, struct problem *p)
{
	if (l->started)
		return end_with(l, l->status); /* forwarded, and it does not end */
	(void)err_set(&p->err, -ETIMEDOUT,
		"the sandbox did not start the command within %d seconds", SESSION_SPEC_MS / 1000);
	return problem_hint(p, -ETIMEDOUT, "sbx ls");
}

/* Until EXIT came and everything is written, or there is nobody to write to. */
static bool is_over(const struct live *l)
{
	return l->ended &&
	       (l->drop || l->s->detach || (!bufq_len(&l->to_out) && !bufq_len(&l->to_err)));
}

static int loop(struct live *l, struct problem *p)
{
	while (!is_over(l)) {
		struct pollfd pfd[N_FDS];
		int r;

		set_up_polls(l, pfd);
		r = poll(pfd, N_FDS, poll_timeout(l));
		if (r < 0 && errno != EINTR)
			return err_errno(&p->err, -errno, "waiting");
		if (l->until && clock_mono_ms() >= l->until && !l->ended) {
			r = on_deadline(l, p);
			if (r < 0)
				return r;
		}
		if (l->s->tick)
			l->s->tick(l->s);
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

static int begin(struct live *l, struct problem *p)
{
	struct session *s = l->s;
	int r;

	l->sigs = open_signals();
	if (l->sigs < 0)
		return err_errno(&p->err, l->sigs, "taking signals");
	if (s->tty)
		term_size(s->in_fd, &s->spec.rows, &s->spec.cols);
	r = exec_put_spec(&l->to_guest, &s->spec);
	if (r == -EMSGSIZE || r == -ENOBUFS)
		return err_set(
			&p->err, r, "the command line and its environment are too long (64 KiB)");
	if (r < 0)
		return err_set(&p->err, r, "the command line is not one that can be sent");
	return s->tty ? term_raw(s->in_fd, &p->err) : 0;
}

int session_run(struct session *s, int conn, struct problem *p)
{
	CLEANUP(live_done) struct live *l = xcalloc(1, sizeof(*l));
	int r;

	l->s = s;
	l->conn = conn;
	l->sigs = -1;
	l->in_open = s->in_fd >= 0 && s->spec.flags & EXEC_F_STDIN;
	l->until = clock_mono_ms() + SESSION_SPEC_MS;
	exec_reader_init(&l->reader, EXEC_FROM_GUEST);
	bufq_init(&l->to_guest, SESSION_QUEUE);
	bufq_init(&l->to_out, SESSION_QUEUE);
	bufq_init(&l->to_err, SESSION_QUEUE);
	r = begin(l, p);
	return r < 0 ? r : loop(l, p);
}
