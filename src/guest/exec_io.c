#include "exec_internal.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* ^D, which a terminal in its usual mode reads as the end of the input. */
#define TTY_EOF "\004"
/* At most so much of one program's output a turn, so that the others get theirs. */
#define TURN_READS 4

bool exec_has_room(const struct exec *e)
{
	return bufq_space(&e->to_host) > EXEC_RESERVE + EXEC_HEADER;
}

void exec_watch_output(struct execs *x, struct exec *e)
{
	bool on = (e->state == EXEC_RUNNING || e->state == EXEC_DRAINING) && exec_has_room(e);

	exec_end_watch(x, e, &e->out, on ? EPOLLIN : 0);
	exec_end_watch(x, e, &e->err, on ? EPOLLIN : 0);
}

/* Bytes moved, 0 when there is nothing now or no room, -1 at the end. */
static ssize_t read_once(struct exec *e, struct exec_end *end, enum exec_type type)
{
	static uint8_t buf[EXEC_MAX_PAYLOAD];
	size_t room;
	ssize_t n;

	if (!exec_has_room(e))
		return 0;
	room = bufq_space(&e->to_host) - EXEC_RESERVE - EXEC_HEADER;
	n = read(end->fd, buf, MIN(room, sizeof(buf)));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* A terminal that nobody holds any more says EIO. */
	if (n <= 0)
		return -1;
	(void)exec_put_data(&e->to_host, type, slice_of(buf, (size_t)n));
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
	exec_resume(x, e);
	exec_watch_output(x, e);
}

ssize_t exec_pull(struct execs *x, uint32_t idx, uint8_t *buf, size_t n)
{
	struct exec *e = &x->slots[idx];
	size_t k = bufq_take(&e->to_host, buf, n);

	bufq_trim(&e->to_host);
	if (k == 0)
		return e->state == EXEC_ENDED ? 0 : -EAGAIN;
	exec_watch_output(x, e);
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

static void write_input(struct execs *x, struct exec *e)
{
	ssize_t n = 1;

	while (n > 0) {
		finish_input(x, e);
		n = e->in.fd < 0 ? 0 : bufq_drain(&e->to_program, e->in.fd);
	}
	/* The program does not read any more: what comes is thrown away, as a pipe does. */
	if (n < 0 && n != -EAGAIN)
		close_input(x, e);
	bufq_trim(&e->to_program);
	exec_end_watch(x, e, &e->in, bufq_len(&e->to_program) > 0 ? EPOLLOUT : 0);
}

static int start(struct execs *x, struct exec *e, struct slice payload)
{
	struct exec_spec spec;
	struct spawn sp;
	struct err err;
	int r = exec_spec_decode(payload, &spec);

	if (r < 0)
		return r;
	e->detached = spec.flags & EXEC_F_DETACHED;
	e->tty = !e->detached && spec.flags & EXEC_F_TTY;
	r = spawn_start(&spec, x->facts, &sp, &err);
	exec_spec_done(&spec);
	if (r < 0) {
		exec_say_error(x, e, 126, err.text);
		return 0;
	}
	e->pid = sp.pid;
	e->state = EXEC_STARTING;
	e->status.fd = sp.status;
	e->in.fd = sp.in;
	e->out.fd = sp.out;
	e->err.fd = sp.err;
	exec_end_watch(x, e, &e->status, EPOLLIN);
	return 0;
}

static int take_signal(struct exec *e, struct slice payload)
{
	uint8_t signo;
	int r = exec_get_signal(payload, &signo);

	if (r == 0 && e->state == EXEC_RUNNING)
		(void)kill(-e->pid, signo);
	return r;
}

static int take_resize(struct exec *e, struct slice payload)
{
	uint16_t rows, cols;
	int r = exec_get_resize(payload, &rows, &cols);

	if (r == 0 && e->tty && e->out.fd >= 0)
		spawn_resize(e->out.fd, rows, cols);
	return r;
}

static int take_input(struct exec *e, struct slice payload)
{
	if (e->eof_wanted)
		return -EBADMSG;
	if (e->in.fd >= 0)
		(void)bufq_put(&e->to_program, payload);
	return 0;
}

static int take_frame(struct execs *x, struct exec *e, const struct exec_frame *f)
{
	switch (f->type) {
	case EXEC_SPEC:
		return start(x, e, f->payload);
	case EXEC_STDIN:
		return take_input(e, f->payload);
	case EXEC_STDIN_EOF:
		e->eof_wanted = true;
		return 0;
	case EXEC_RESIZE:
		return take_resize(e, f->payload);
	case EXEC_SIGNAL:
		return take_signal(e, f->payload);
	default:
		return -EBADMSG;
	}
}

/* While the program is being started its input waits; afterwards a frame is taken only when its
 * whole payload would fit. */
static bool can_take(const struct exec *e)
{
	return e->state != EXEC_STARTING && bufq_space(&e->to_program) >= EXEC_MAX_PAYLOAD;
}

/* Eats one run of bytes; how many, or -EBADMSG. */
static ssize_t eat(struct execs *x, struct exec *e)
{
	struct slice run = bufq_peek(&e->from_host), left = run;
	struct exec_frame f;
	int r = exec_reader_feed(&e->reader, &left, &f);

	if (r == 1)
		r = take_frame(x, e, &f);
	if (r < 0)
		return r;
	bufq_consume(&e->from_host, run.n - left.n);
	return (ssize_t)(run.n - left.n);
}

void exec_pump_input(struct execs *x, struct exec *e)
{
	size_t done = 0;
	ssize_t n = 1;

	if (!e->id)
		return;
	write_input(x, e);
	while (n > 0 && bufq_len(&e->from_host) > 0 && can_take(e)) {
		n = eat(x, e);
		if (n < 0) {
			exec_violation(x, e);
			return;
		}
		done += (size_t)n;
		write_input(x, e);
	}
	bufq_trim(&e->from_host);
	if (done > 0)
		wire_consumed(x->wire, e->id, done);
}

void exec_on_data(struct execs *x, uint32_t idx, struct slice bytes)
{
	struct exec *e = &x->slots[idx];

	/* More than the window allows cannot come; should it, the stream is over. */
	if (bufq_put(&e->from_host, bytes) < bytes.n)
		exec_violation(x, e);
	else
		exec_pump_input(x, e);
}
