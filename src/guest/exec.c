#include "exec_internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "event.h"
#include "session_kill.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

static uint32_t index_of(const struct execs *x, const struct exec *e)
{
	return (uint32_t)(e - x->slots);
}

static struct loop_key key_of(const struct execs *x, const struct exec *e, uint8_t kind)
{
	return (struct loop_key){.kind = kind, .gen = e->gen, .idx = index_of(x, e)};
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
	bufq_done(&e->from_host);
	bufq_done(&e->to_program);
	bufq_done(&e->to_host);
	exec_reader_done(&e->reader);
}

static void free_slot(struct execs *x, struct exec *e)
{
	uint32_t gen = e->gen + 1;

	loop_timer_clear(x->loop, &e->timer);
	close_ends(x, e);
	drop_queues(e);
	*e = (struct exec){.gen = gen & 0xffffff};
	x->n_used--;
}

int exec_open(struct execs *x, uint32_t id, uint32_t *ret_idx)
{
	for (uint32_t i = 0; i < EXEC_MAX; i++) {
		struct exec *e = &x->slots[i];

		if (e->state != EXEC_FREE)
			continue;
		*e = (struct exec){.state = EXEC_WAITING,
			.gen = e->gen,
			.id = id,
			.status = {.fd = -1, .kind = GUEST_EV_EXEC_STATUS},
			.in = {.fd = -1, .kind = GUEST_EV_EXEC_IN},
			.out = {.fd = -1, .kind = GUEST_EV_EXEC_OUT},
			.err = {.fd = -1, .kind = GUEST_EV_EXEC_ERR}};
		exec_reader_init(&e->reader, EXEC_FROM_HOST);
		bufq_init(&e->from_host, WIRE_STREAM_WINDOW);
		bufq_init(&e->to_program, EXEC_IN_QUEUE);
		bufq_init(&e->to_host, EXEC_OUT_QUEUE);
		x->n_used++;
		*ret_idx = i;
		return wire_reply(x->wire, id, 200);
	}
	return -EBUSY;
}

void exec_resume(struct execs *x, struct exec *e)
{
	if (e->id && x->wire)
		wire_resume(x->wire, e->id);
}

static void set_timer(struct execs *x, struct exec *e, unsigned ms)
{
	loop_timer_set(x->loop, &e->timer, clock_mono_ms() + ms, key_of(x, e, GUEST_EV_EXEC_TIMER));
}

/* The stream is gone while the program runs. */
static void orphan(struct execs *x, struct exec *e)
{
	e->state = EXEC_ORPHAN;
	/* The group is not there yet when the child has not come as far as setsid. */
	(void)kill(e->pid, SIGHUP);
	(void)kill(-e->pid, SIGHUP);
	(void)kill(-e->pid, SIGCONT);
	close_ends(x, e);
	drop_queues(e);
	set_timer(x, e, EXEC_KILL_MS);
}

static void lose_stream(struct execs *x, struct exec *e)
{
	e->id = 0;
	if (e->state == EXEC_FREE || e->state == EXEC_ORPHAN)
		return;
	if ((e->state == EXEC_STARTING || e->state == EXEC_RUNNING) && !e->detached)
		orphan(x, e);
	else
		free_slot(x, e);
}

void exec_on_close(struct execs *x, uint32_t idx)
{
	lose_stream(x, &x->slots[idx]);
}

void exec_on_end(struct execs *x, uint32_t idx)
{
	struct exec *e = &x->slots[idx];

	/* Input ends by STDIN_EOF; a host that ends its half has nobody left on its side. */
	if (e->state == EXEC_ENDED || e->detached)
		return;
	exec_violation(x, e);
}

void exec_violation(struct execs *x, struct exec *e)
{
	if (e->id)
		wire_reset(x->wire, e->id);
	lose_stream(x, e);
}

void exec_drop_all(struct execs *x)
{
	for (uint32_t i = 0; i < EXEC_MAX; i++)
		if (x->slots[i].id)
			lose_stream(x, &x->slots[i]);
	x->wire = NULL;
}

void exec_say_error(struct execs *x, struct exec *e, uint8_t status, const char *text)
{
	int r = exec_put_error(&e->to_host, status, text);

	assert(r == 0);
	e->state = EXEC_ENDED;
	close_ends(x, e);
	exec_resume(x, e);
}

static void say_started(struct execs *x, struct exec *e)
{
	int r = exec_put_started(&e->to_host, (uint32_t)e->pid);

	assert(r == 0);
	exec_end_close(x, e, &e->status);
	e->state = e->detached ? EXEC_ENDED : EXEC_RUNNING;
	exec_resume(x, e);
	if (e->state == EXEC_RUNNING) {
		exec_watch_output(x, e);
		exec_pump_input(x, e);
	}
}

/* The status pipe ended (the program runs) or has the reason why not. */
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
	exec_say_error(x, e, buf[0], (const char *)buf + 1);
}

static void say_exit(struct execs *x, struct exec *e)
{
	bool signalled = WIFSIGNALED(e->wait_status);
	int value = signalled ? WTERMSIG(e->wait_status) : WEXITSTATUS(e->wait_status);
	int r = exec_put_exit(&e->to_host, signalled, (uint8_t)value);

	assert(r == 0);
	e->state = EXEC_ENDED;
	loop_timer_clear(x->loop, &e->timer);
	close_ends(x, e);
	exec_resume(x, e);
}

/* Is all output there that will be waited for? */
void exec_check_drained(struct execs *x, struct exec *e)
{
	bool late = clock_mono_ms() - e->ended_ms >= EXEC_DRAIN_MS;

	if (e->state != EXEC_DRAINING)
		return;
	if ((e->out.fd < 0 && e->err.fd < 0) || (late && e->out.owed + e->err.owed == 0))
		say_exit(x, e);
}

static void note_owed(struct exec_end *end)
{
	int n = 0;

	if (end->fd >= 0 && ioctl(end->fd, FIONREAD, &n) == 0 && n > 0)
		end->owed = (size_t)n;
}

bool exec_on_exit(struct execs *x, pid_t pid, int wait_status)
{
	struct exec *e = x->slots;

	while (e < x->slots + EXEC_MAX && (e->state == EXEC_FREE || e->pid != pid))
		e++;
	if (e == x->slots + EXEC_MAX)
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
	/* Most often everything is there and the pipe's end with it: no turn of the loop is lost.
	 */
	exec_read_output(x, e, &e->out, EXEC_STDOUT);
	exec_read_output(x, e, &e->err, EXEC_STDERR);
	exec_check_drained(x, e);
	return true;
}

/* Silence counts only while there is room to read into. */
static void on_silence(struct execs *x, struct exec *e)
{
	if (!exec_has_room(e))
		set_timer(x, e, EXEC_SILENCE_MS);
	else
		say_exit(x, e);
}

static void on_timer(struct execs *x, struct exec *e)
{
	if (e->state == EXEC_DRAINING)
		on_silence(x, e);
	if (e->state != EXEC_ORPHAN)
		return;
	(void)kill(-e->pid, SIGKILL);
	session_kill(e->pid, SIGKILL);
	free_slot(x, e);
}

void exec_on_event(struct execs *x, const struct loop_event *ev)
{
	struct exec *e = &x->slots[ev->key.idx];

	if (e->gen != ev->key.gen || e->state == EXEC_FREE)
		return;
	if (ev->key.kind == GUEST_EV_EXEC_TIMER)
		on_timer(x, e);
	else if (ev->key.kind == GUEST_EV_EXEC_STATUS && e->status.fd >= 0)
		read_status(x, e);
	else if (ev->key.kind == GUEST_EV_EXEC_IN)
		exec_pump_input(x, e);
	else if (ev->key.kind == GUEST_EV_EXEC_OUT)
		exec_read_output(x, e, &e->out, EXEC_STDOUT);
	else if (ev->key.kind == GUEST_EV_EXEC_ERR)
		exec_read_output(x, e, &e->err, EXEC_STDERR);
	if (e->state == EXEC_DRAINING && ev->key.kind != GUEST_EV_EXEC_TIMER) {
		set_timer(x, e, EXEC_SILENCE_MS);
		exec_check_drained(x, e);
	}
}
