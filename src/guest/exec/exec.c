/* SPDX-License-Identifier: Apache-2.0 */
#include "exec_internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "session_kill.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"

static struct loop_key key_of(const struct execs *x, const struct exec *e, uint8_t kind)
{
	return (struct loop_key){.kind = kind, .gen = e->gen, .idx = (uint32_t)(e - x->slots)};
}

void exec_end_watch(struct execs *x, struct exec *e, struct exec_end *end, uint32_t events)
{
	struct loop_key key = key_of(x, e, end->kind);

	if (end->fd < 0 || end->events == events)
		return;
	if (events == 0)
		loop_del(x->loop, end->fd);
	else if (end->events == 0)
		(void)!loop_add(x->loop, end->fd, events, key);
	else
		(void)!loop_mod(x->loop, end->fd, events, key);
	end->events = events;
}

void exec_end_close(struct execs *x, struct exec *e, struct exec_end *end)
{
	exec_end_watch(x, e, end, 0);
	fd_close(&end->fd);
	end->owed = 0;
}

static void close_ends(struct execs *x, struct exec *e)
{
	exec_end_close(x, e, &e->status);
	exec_end_close(x, e, &e->in);
	exec_end_close(x, e, &e->out);
	exec_end_close(x, e, &e->err);
}

static void drop_queues(struct exec *e)
{
	bufq_done(&e->to_program);
	exec_ring_done(&e->ring);
}

void exec_free(struct execs *x, struct exec *e)
{
	uint32_t gen = e->gen + 1;

	if (e->conn)
		e->conn->e = NULL;
	loop_timer_clear(x->loop, &e->timer);
	loop_timer_clear(x->loop, &e->aside);
	close_ends(x, e);
	drop_queues(e);
	*e = (struct exec){.gen = gen & 0xffffff};
	x->n_used--;
}

static struct exec *make_exec(struct execs *x)
{
	struct exec *e = x->slots;

	while (e < x->slots + EXEC_MAX && e->state != EXEC_FREE)
		e++;
	if (e == x->slots + EXEC_MAX)
		return NULL;
	*e = (struct exec){.state = EXEC_STARTING,
		.gen = e->gen,
		.status = {.fd = -1, .kind = GUEST_EV_EXEC_STATUS},
		.in = {.fd = -1, .kind = GUEST_EV_EXEC_IN},
		.out = {.fd = -1, .kind = GUEST_EV_EXEC_OUT},
		.err = {.fd = -1, .kind = GUEST_EV_EXEC_ERR}};
	bufq_init(&e->to_program, EXEC_IN_QUEUE);
	x->n_used++;
	return e;
}

int exec_open(struct execs *x, uint32_t id, uint32_t *ret_idx)
{
	for (uint32_t i = 0; i < EXEC_MAX_CONNS; i++) {
		struct exec_conn *c = &x->conns[i];

		if (c->id)
			continue;
		*c = (struct exec_conn){.id = id};
		exec_reader_init(&c->reader, EXEC_FROM_HOST);
		bufq_init(&c->from_host, WIRE_STREAM_WINDOW);
		bufq_init(&c->to_host, EXEC_OUT_QUEUE);
		bufq_init(&c->replay, EXEC_KEPT_RING + 2 * SCREEN_MAX_START);
		*ret_idx = i;
		return wire_reply(x->wire, id, 200);
	}
	return -EBUSY;
}

static void free_conn(struct exec_conn *c)
{
	if (c->e)
		c->e->conn = NULL;
	bufq_done(&c->from_host);
	bufq_done(&c->to_host);
	bufq_done(&c->replay);
	exec_reader_done(&c->reader);
	*c = (struct exec_conn){0};
}

void exec_resume(struct execs *x, struct exec_conn *c)
{
	if (c && x->wire)
		wire_resume(x->wire, c->id);
}

static void set_timer(struct execs *x, struct exec *e, unsigned ms)
{
	loop_timer_set(x->loop, &e->timer, clock_mono_ms() + ms, key_of(x, e, GUEST_EV_EXEC_TIMER));
}

void exec_set_aside(struct execs *x, struct exec *e, unsigned ms)
{
	loop_timer_set(x->loop, &e->aside, clock_mono_ms() + ms, key_of(x, e, GUEST_EV_EXEC_ASIDE));
}

static bool has_program(const struct exec *e)
{
	return e->state == EXEC_STARTING || e->state == EXEC_RUNNING;
}

/* The program has no client, and will get none. */
void exec_hang_up(struct execs *x, struct exec *e)
{
	if (!has_program(e) || e->detached) {
		exec_free(x, e);
		return;
	}
	e->state = EXEC_ORPHAN;
	/* The group does not exist before the child has called setsid. */
	(void)kill(e->pid, SIGHUP);
	(void)kill(-e->pid, SIGHUP);
	(void)kill(-e->pid, SIGCONT);
	close_ends(x, e);
	drop_queues(e);
	loop_timer_clear(x->loop, &e->aside);
	set_timer(x, e, EXEC_KILL_MS);
}

void exec_leave(struct execs *x, struct exec *e, bool told)
{
	e->conn = NULL;
	if (e->state == EXEC_ENDED && told)
		exec_free(x, e);
	else if (!exec_is_kept(e) && !e->parked)
		exec_hang_up(x, e);
	else
		exec_watch_output(x, e);
	exec_forget_dead(x);
}

static void lose_conn(struct execs *x, struct exec_conn *c, bool told)
{
	struct exec *e = c->e;

	free_conn(c);
	if (e)
		exec_leave(x, e, told);
}

void exec_on_close(struct execs *x, uint32_t idx)
{
	struct exec_conn *c = &x->conns[idx];

	lose_conn(x, c, c->last && bufq_len(&c->to_host) == 0);
}

void exec_on_end(struct execs *x, uint32_t idx)
{
	struct exec_conn *c = &x->conns[idx];

	/* Input ends by STDIN_EOF; a host that closes its half has no client left. */
	if (!c->last && !(c->e && c->e->detached))
		exec_violation(x, c);
}

void exec_violation(struct execs *x, struct exec_conn *c)
{
	wire_reset(x->wire, c->id);
	lose_conn(x, c, false);
}

void exec_drop_all(struct execs *x)
{
	for (uint32_t i = 0; i < EXEC_MAX_CONNS; i++)
		if (x->conns[i].id)
			lose_conn(x, &x->conns[i], false);
	x->wire = NULL;
}

void exec_say_error(struct execs *x, struct exec_conn *c, uint8_t status, const char *text)
{
	int r = exec_put_error(&c->to_host, status, text);

	assert(r == 0);
	c->last = true;
	exec_resume(x, c);
}

/* The program could not be started. */
static void fail_start(struct execs *x, struct exec *e, uint8_t status, const char *text)
{
	if (e->conn)
		exec_say_error(x, e->conn, status, text);
	exec_free(x, e);
}

static void say_started(struct execs *x, struct exec *e)
{
	exec_end_close(x, e, &e->status);
	e->state = EXEC_RUNNING;
	if (e->conn)
		exec_say_begun(x, e->conn);
	if (e->detached) {
		if (e->conn)
			e->conn->last = true;
		exec_free(x, e);
		return;
	}
	exec_watch_output(x, e);
	if (e->conn)
		exec_pump_input(x, e->conn);
}

/* The status pipe closed (the program runs) or has the error. */
static void read_status(struct execs *x, struct exec *e)
{
	uint8_t buf[SPAWN_MAX_STATUS];
	ssize_t n = read(e->status.fd, buf, sizeof(buf) - 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		say_started(x, e);
		return;
	}
	buf[n] = '\0';
	fail_start(x, e, buf[0], (const char *)buf + 1);
}

static void spawn_it(struct execs *x, struct exec *e, const struct exec_spec *spec)
{
	struct spawn sp;
	struct err err;

	if (spawn_start(spec, x->facts, &sp, &err) < 0) {
		fail_start(x, e, 126, err.text);
		return;
	}
	e->pid = sp.pid;
	e->status.fd = sp.status;
	e->in.fd = sp.in;
	e->out.fd = sp.out;
	e->err.fd = sp.err;
	exec_end_watch(x, e, &e->status, EPOLLIN);
}

static void start_spec(struct execs *x, struct exec_conn *c, const struct exec_spec *spec)
{
	bool keep = spec->flags & EXEC_F_KEEP;
	const char *why = keep ? exec_keep_refusal(x, spec->session) : NULL;
	struct exec *e = why ? NULL : make_exec(x);

	if (!e) {
		exec_say_error(x, c, 126, why ? why : "too many programs are running");
		return;
	}
	e->detached = spec->flags & EXEC_F_DETACHED;
	e->tty = !e->detached && spec->flags & EXEC_F_TTY;
	e->rows = spec->rows;
	e->cols = spec->cols;
	memcpy(e->token, spec->token, EXEC_TOKEN);
	memcpy(e->name, spec->session, sizeof(e->name));
	exec_ring_init(&e->ring, keep ? EXEC_KEPT_RING : EXEC_PLAIN_RING);
	c->acks = spec->flags & EXEC_F_RESUME;
	exec_take_over(x, c, e);
	spawn_it(x, e, spec);
}

int exec_start(struct execs *x, struct exec_conn *c, struct slice payload)
{
	struct exec_spec spec;
	struct exec *e;
	int r = exec_spec_decode(payload, &spec);

	if (r < 0)
		return r;
	e = spec.flags & EXEC_F_ATTACH ? exec_find_kept(x, spec.session) : NULL;
	if (e && e->state != EXEC_ENDED) {
		c->how = (struct exec_attach){.rows = spec.rows, .cols = spec.cols};
		c->attaching = c->acks = true;
		memcpy(e->token, spec.token, EXEC_TOKEN);
		exec_take_over(x, c, e);
	} else {
		start_spec(x, c, &spec);
	}
	exec_spec_done(&spec);
	return 0;
}

static void end_it(struct execs *x, struct exec *e)
{
	e->state = EXEC_ENDED;
	e->serial = ++x->n_ended;
	loop_timer_clear(x->loop, &e->timer);
	close_ends(x, e);
	exec_resume(x, e->conn);
	exec_forget_dead(x);
}

/* Checks whether all awaited output was read. */
static void check_drained(struct execs *x, struct exec *e)
{
	bool late = clock_mono_ms() - e->ended_ms >= EXEC_DRAIN_MS;

	if (e->state != EXEC_DRAINING)
		return;
	if ((e->out.fd < 0 && e->err.fd < 0) || (late && e->out.owed + e->err.owed == 0))
		end_it(x, e);
}

static void note_owed(struct exec_end *end)
{
	int n = 0;

	if (end->fd >= 0 && ioctl(end->fd, FIONREAD, &n) == 0 && n > 0)
		end->owed = (size_t)n;
}

/* A pid may be reused after its process was reaped. */
static struct exec *find_process(struct execs *x, pid_t pid)
{
	for (struct exec *e = x->slots; e < x->slots + EXEC_MAX; e++)
		if (e->pid == pid && (has_program(e) || e->state == EXEC_ORPHAN))
			return e;
	return NULL;
}

bool exec_on_exit(struct execs *x, pid_t pid, int wait_status)
{
	struct exec *e = find_process(x, pid);

	if (!e)
		return false;
	if (e->state == EXEC_STARTING)
		read_status(x, e);
	if (e->state != EXEC_RUNNING)
		return true;
	e->wait_status = wait_status;
	e->ended_ms = clock_mono_ms();
	e->state = EXEC_DRAINING;
	note_owed(&e->out);
	note_owed(&e->err);
	set_timer(x, e, EXEC_SILENCE_MS);
	/* Usually all output and the end of the pipe are available: saves a turn of the loop. */
	exec_read_output(x, e, &e->out, EXEC_STDOUT);
	exec_read_output(x, e, &e->err, EXEC_STDERR);
	check_drained(x, e);
	return true;
}

/* The silence timeout applies only while there is room to read into. */
static void on_silence(struct execs *x, struct exec *e)
{
	if (!exec_has_room(e))
		set_timer(x, e, EXEC_SILENCE_MS);
	else
		end_it(x, e);
}

static void on_timer(struct execs *x, struct exec *e)
{
	if (e->state == EXEC_DRAINING)
		on_silence(x, e);
	if (e->state != EXEC_ORPHAN)
		return;
	(void)kill(-e->pid, SIGKILL);
	session_kill(e->pid, SIGKILL);
	exec_free(x, e);
}

static void on_end_ready(struct execs *x, struct exec *e, uint8_t kind)
{
	if (kind == GUEST_EV_EXEC_STATUS && e->status.fd >= 0)
		read_status(x, e);
	else if (kind == GUEST_EV_EXEC_IN && e->conn)
		exec_pump_input(x, e->conn);
	else if (kind == GUEST_EV_EXEC_IN)
		exec_write_input(x, e);
	else if (kind == GUEST_EV_EXEC_OUT)
		exec_read_output(x, e, &e->out, EXEC_STDOUT);
	else if (kind == GUEST_EV_EXEC_ERR)
		exec_read_output(x, e, &e->err, EXEC_STDERR);
	if (e->state == EXEC_DRAINING) {
		set_timer(x, e, EXEC_SILENCE_MS);
		check_drained(x, e);
	}
}

void exec_on_event(struct execs *x, const struct loop_event *ev)
{
	struct exec *e = &x->slots[ev->key.idx];

	if (e->gen != ev->key.gen || e->state == EXEC_FREE)
		return;
	if (ev->key.kind == GUEST_EV_EXEC_TIMER)
		on_timer(x, e);
	else if (ev->key.kind == GUEST_EV_EXEC_ASIDE)
		exec_on_aside(x, e);
	else
		on_end_ready(x, e, ev->key.kind);
}
