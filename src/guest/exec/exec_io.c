/* SPDX-License-Identifier: Apache-2.0 */
#include "exec_internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ^D, which a terminal in its usual mode reads as the end of the input. */
#define TTY_EOF "\004"
/* Limit for one program's output per turn, so that the others are served. */
#define TURN_READS 4

/* Output from this offset on must not be lost; of a detached session, any may be. */
static uint64_t keep_from(const struct exec *e)
{
	return exec_is_kept(e) && !e->conn ? e->ring.end : e->acked;
}

bool exec_has_room(const struct exec *e)
{
	return exec_ring_room(&e->ring, keep_from(e)) > 0;
}

void exec_watch_output(struct execs *x, struct exec *e)
{
	bool on = (e->state == EXEC_RUNNING || e->state == EXEC_DRAINING) && exec_has_room(e);

	exec_end_watch(x, e, &e->out, on ? EPOLLIN : 0);
	exec_end_watch(x, e, &e->err, on ? EPOLLIN : 0);
}

/* Returns the bytes moved, 0 if there is no data or no room, -1 at the end. */
static ssize_t read_once(struct exec *e, struct exec_end *end, enum exec_type type)
{
	static uint8_t buf[EXEC_RING_FRAME];
	size_t room = exec_ring_room(&e->ring, keep_from(e));
	ssize_t n;

	if (room == 0)
		return 0;
	n = read(end->fd, buf, MIN(room, sizeof(buf)));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* A terminal without an open slave returns EIO. */
	if (n <= 0)
		return -1;
	exec_ring_put(&e->ring, type, slice_of(buf, (size_t)n), keep_from(e),
		exec_is_kept(e) ? &e->screen : NULL);
	end->owed -= MIN(end->owed, (size_t)n);
	return n;
}

void exec_read_output(struct execs *x, struct exec *e, struct exec_end *end, enum exec_type type)
{
	ssize_t n = 1;

	if (end->fd < 0 || (e->state != EXEC_RUNNING && e->state != EXEC_DRAINING))
		return;
	for (int i = 0; n > 0 && i < TURN_READS; i++)
		n = read_once(e, end, type);
	if (n < 0)
		exec_end_close(x, e, end);
	exec_resume(x, e->conn);
	exec_watch_output(x, e);
}

static size_t space_of(const struct exec_conn *c)
{
	size_t space = bufq_space(&c->to_host);

	return space > EXEC_RESERVE ? space - EXEC_RESERVE : 0;
}

static void send_replay(struct exec_conn *c)
{
	while (bufq_len(&c->replay) && space_of(c) > EXEC_HEADER) {
		struct slice s = bufq_peek(&c->replay);
		size_t n = MIN(s.n, space_of(c) - EXEC_HEADER);

		bufq_consume(&c->replay, exec_put_data(&c->to_host, EXEC_REPLAY, slice_of(s.p, n)));
	}
	bufq_trim(&c->replay);
}

static void send_exit(struct exec_conn *c)
{
	int status = c->e->wait_status;
	bool signalled = WIFSIGNALED(status);
	int value = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
	int r = exec_put_exit(&c->to_host, signalled, (uint8_t)value);

	assert(r == 0);
	c->last = true;
}

/* Queues the exec's output for its client as complete frames, as far as there is room. */
static void fill_io(struct execs *x, struct exec_conn *c)
{
	struct exec *e = c->e;

	if (c->looks && !c->last) {
		send_replay(c);
		c->last = bufq_len(&c->replay) == 0;
	}
	if (!e || c->last || !c->begun)
		return;
	send_replay(c);
	if (bufq_len(&c->replay))
		return;
	if (c->acks && e->in_taken - c->told >= EXEC_TAKEN_STEP && space_of(c) > 0) {
		(void)!exec_put_offset(&c->to_host, EXEC_TAKEN, e->in_taken);
		c->told = e->in_taken;
	}
	c->sent = exec_ring_copy(&e->ring, c->sent, &c->to_host, space_of(c));
	if (!c->acks) {
		e->acked = c->sent;
		exec_ring_drop(&e->ring, e->acked);
	}
	if (e->state == EXEC_ENDED && c->sent == e->ring.end)
		send_exit(c);
	exec_watch_output(x, e);
}

ssize_t exec_pull(struct execs *x, uint32_t idx, uint8_t *buf, size_t n)
{
	struct exec_conn *c = &x->conns[idx];
	size_t k;

	fill_io(x, c);
	k = bufq_take(&c->to_host, buf, n);
	bufq_trim(&c->to_host);
	if (k == 0)
		return c->last ? 0 : -EAGAIN;
	return (ssize_t)k;
}

static void close_input(struct execs *x, struct exec *e)
{
	exec_end_close(x, e, &e->in);
	bufq_done(&e->to_program);
	bufq_init(&e->to_program, EXEC_IN_QUEUE);
}

static void finish_input(struct execs *x, struct exec *e)
{
	if (!e->eof_wanted || e->eof_seen || bufq_len(&e->to_program) > 0)
		return;
	e->eof_seen = true;
	if (e->tty)
		(void)bufq_put(&e->to_program, slice_from_str(TTY_EOF));
	else
		close_input(x, e);
}

void exec_write_input(struct execs *x, struct exec *e)
{
	ssize_t n = 1;

	while (n > 0) {
		finish_input(x, e);
		n = e->in.fd < 0 ? 0 : bufq_drain(&e->to_program, e->in.fd);
	}
	/* The program no longer reads: further input is dropped, as with a pipe. */
	if (n < 0 && n != -EAGAIN)
		close_input(x, e);
	bufq_trim(&e->to_program);
	exec_end_watch(x, e, &e->in, bufq_len(&e->to_program) > 0 ? EPOLLOUT : 0);
}

static int take_signal(struct exec *e, struct slice payload)
{
	uint8_t signo;
	int r = exec_get_signal(payload, &signo);

	if (r == 0 && e->state == EXEC_RUNNING)
		(void)kill(-e->pid, signo);
	return r;
}

static int take_resize(struct execs *x, struct exec *e, struct slice payload)
{
	uint16_t rows, cols;
	int r = exec_get_resize(payload, &rows, &cols);

	if (r == 0)
		exec_resize(x, e, rows, cols);
	return r;
}

static int take_input(struct execs *x, struct exec_conn *c, struct slice payload)
{
	struct exec *e = c->e;

	if (e->eof_wanted)
		return -EBADMSG;
	e->in_taken += payload.n;
	if (e->in.fd >= 0)
		(void)bufq_put(&e->to_program, payload);
	if (c->acks && e->in_taken - c->told >= EXEC_TAKEN_STEP)
		exec_resume(x, c);
	return 0;
}

static int take_detach(struct execs *x, struct exec_conn *c)
{
	struct exec *e = c->e;

	if (!exec_is_kept(e))
		return -EBADMSG;
	exec_send_away(x, c, EXEC_ASKED);
	exec_leave(x, e, false);
	return 0;
}

static int take_frame(struct execs *x, struct exec_conn *c, const struct exec_frame *f)
{
	if (f->type == EXEC_SPEC)
		return exec_start(x, c, f->payload);
	if (f->type == EXEC_ATTACH)
		return exec_take_attach(x, c, f->payload);
	if (!c->e)
		return 0;
	switch (f->type) {
	case EXEC_STDIN:
		return take_input(x, c, f->payload);
	case EXEC_STDIN_EOF:
		c->e->eof_wanted = true;
		return 0;
	case EXEC_RESIZE:
		return take_resize(x, c->e, f->payload);
	case EXEC_SIGNAL:
		return take_signal(c->e, f->payload);
	case EXEC_ACK:
		return exec_take_ack(x, c, f->payload);
	case EXEC_DETACH:
		return take_detach(x, c);
	default:
		return -EBADMSG;
	}
}

/* While the program is being started its input waits; afterwards a frame is accepted only if its
 * whole payload fits. */
static bool can_take(const struct exec_conn *c)
{
	const struct exec *e = c->e;

	return !e || (e->state != EXEC_STARTING && bufq_space(&e->to_program) >= EXEC_MAX_PAYLOAD);
}

/* Consumes one run of bytes; returns its length, or -EBADMSG. */
static ssize_t eat_io(struct execs *x, struct exec_conn *c)
{
	struct slice run = bufq_peek(&c->from_host), left = run;
	struct exec_frame f;
	int r = exec_reader_feed(&c->reader, &left, &f);

	if (r == 1)
		r = take_frame(x, c, &f);
	if (r < 0)
		return r;
	bufq_consume(&c->from_host, run.n - left.n);
	return (ssize_t)(run.n - left.n);
}

void exec_pump_input(struct execs *x, struct exec_conn *c)
{
	size_t done = 0;
	ssize_t n = 1;

	if (c->e)
		exec_write_input(x, c->e);
	while (n > 0 && bufq_len(&c->from_host) > 0 && can_take(c)) {
		n = eat_io(x, c);
		if (n < 0) {
			exec_violation(x, c);
			return;
		}
		done += (size_t)n;
		if (c->e)
			exec_write_input(x, c->e);
	}
	bufq_trim(&c->from_host);
	if (done > 0)
		wire_consumed(x->wire, c->id, done);
}

void exec_on_data(struct execs *x, uint32_t idx, struct slice bytes)
{
	struct exec_conn *c = &x->conns[idx];

	/* The window limits the data; if it is exceeded, the stream ends. */
	if (bufq_put(&c->from_host, bytes) < bytes.n)
		exec_violation(x, c);
	else
		exec_pump_input(x, c);
}
