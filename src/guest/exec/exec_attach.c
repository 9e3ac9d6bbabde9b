/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a program: attaching, taking over, detaching, and kept sessions. */
#include "exec_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

static struct exec *next_used(struct execs *x, struct exec *e)
{
	e = e ? e + 1 : x->slots;
	while (e < x->slots + EXEC_MAX && (e->state == EXEC_FREE || e->state == EXEC_ORPHAN))
		e++;
	return e < x->slots + EXEC_MAX ? e : NULL;
}

struct exec *exec_find_kept(struct execs *x, const char *name)
{
	for (struct exec *e = next_used(x, NULL); e; e = next_used(x, e))
		if (exec_is_kept(e) && !strcmp(e->name, name))
			return e;
	return NULL;
}

static struct exec *find_token(struct execs *x, const uint8_t token[EXEC_TOKEN])
{
	static const uint8_t none[EXEC_TOKEN];

	if (!memcmp(token, none, EXEC_TOKEN))
		return NULL;
	for (struct exec *e = next_used(x, NULL); e; e = next_used(x, e))
		if (!memcmp(e->token, token, EXEC_TOKEN))
			return e;
	return NULL;
}

/* Counts exited sessions that wait for a client; the oldest in *ret. */
static unsigned count_dead(struct execs *x, struct exec **ret)
{
	unsigned n = 0;

	*ret = NULL;
	for (struct exec *e = next_used(x, NULL); e; e = next_used(x, e)) {
		if (!exec_is_kept(e) || e->state != EXEC_ENDED || e->conn)
			continue;
		n++;
		if (!*ret || e->serial < (*ret)->serial)
			*ret = e;
	}
	return n;
}

void exec_forget_dead(struct execs *x)
{
	struct exec *oldest;

	if (count_dead(x, &oldest) > EXEC_MAX_DEAD)
		exec_free(x, oldest);
}

const char *exec_keep_refusal(struct execs *x, const char *name)
{
	struct exec *e = exec_find_kept(x, name), *oldest;
	unsigned n = 0;

	if (e && (e->state != EXEC_ENDED || (e->conn && !e->conn->last)))
		return "a session with this name already exists";
	/* The previous one has exited, and its client got the status: reuse its slot. */
	if (e)
		exec_free(x, e);
	for (e = next_used(x, NULL); e; e = next_used(x, e))
		n += exec_is_kept(e);
	if (n < EXEC_MAX_KEPT)
		return NULL;
	if (count_dead(x, &oldest) == 0)
		return "too many sessions";
	exec_free(x, oldest);
	return NULL;
}

void exec_take_over(struct execs *x, struct exec_conn *c, struct exec *e)
{
	if (e->conn)
		exec_send_away(x, e->conn, EXEC_TAKEN_OVER);
	c->e = e;
	e->conn = c;
	e->parked = false;
	loop_timer_clear(x->loop, &e->aside);
	if (c->attaching && e->state != EXEC_STARTING)
		exec_say_begun(x, c);
}

static void say_attached(struct exec_conn *c, bool replay)
{
	const struct exec *e = c->e;
	struct exec_attached a = {.pid = (uint32_t)e->pid,
		.flags = (uint8_t)((e->tty ? EXEC_AF_TTY : 0) | (e->eof_wanted ? EXEC_AF_EOF : 0) |
				   (replay ? EXEC_AF_REPLAY : 0)),
		.in_taken = e->in_taken,
		.out_at = c->sent,
		.replay = bufq_len(&c->replay),
		.dropped = e->ring.base};
	int r = exec_put_attached(&c->to_host, &a);

	assert(r == 0);
	c->told = e->in_taken;
}

static void fill_replay(struct exec_conn *c)
{
	struct screen screen = c->e->screen;

	screen_put_start(&screen, &c->replay);
	exec_ring_replay(&c->e->ring, &screen, &c->replay);
}

/* A program redraws when the size of its terminal changes. It would not if it saw the old size
 * again by the time it checks, so the other size stays for a moment. */
static void nudge_attach(struct execs *x, struct exec *e, uint16_t rows, uint16_t cols)
{
	if (e->out.fd < 0 || rows == 0 || cols == 0)
		return;
	if (rows != e->rows || cols != e->cols) {
		exec_resize(x, e, rows, cols);
		return;
	}
	spawn_resize(e->out.fd, rows > 1 ? rows - 1 : 2, cols);
	exec_set_aside(x, e, EXEC_NUDGE_MS);
}

static void begin_attached(struct execs *x, struct exec_conn *c)
{
	struct exec *e = c->e;
	uint64_t from = exec_is_kept(e) ? e->ring.base : e->acked;
	bool again = c->how.resume && c->how.out_at >= from && c->how.out_at <= e->ring.end;

	if (!again && !exec_is_kept(e)) {
		exec_say_error(x, c, EXEC_NO_SESSION, "the requested output is no longer stored");
		exec_leave(x, e, false);
		c->e = NULL;
		return;
	}
	c->sent = e->acked = again ? c->how.out_at : e->ring.end;
	if (!again)
		fill_replay(c);
	say_attached(c, !again);
	if (!e->tty)
		return;
	if (again)
		exec_resize(x, e, c->how.rows, c->how.cols);
	else
		nudge_attach(x, e, c->how.rows, c->how.cols);
}

void exec_say_begun(struct execs *x, struct exec_conn *c)
{
	int r = 0;

	c->begun = true;
	if (c->attaching)
		begin_attached(x, c);
	else
		r = exec_put_started(&c->to_host, (uint32_t)c->e->pid);
	assert(r == 0);
	exec_resume(x, c);
	if (c->e)
		exec_watch_output(x, c->e);
}

/* No client is detached, nothing is redrawn, and the program does not notice. */
static void look_attach(struct execs *x, struct exec_conn *c, const struct exec *e)
{
	struct exec_attached a = {.pid = (uint32_t)e->pid, .dropped = e->ring.base};
	int r;

	a.flags = (uint8_t)((e->tty ? EXEC_AF_TTY : 0) |
			    (e->state == EXEC_ENDED ? EXEC_AF_ENDED : 0));
	a.out_at = e->ring.end;
	exec_ring_data(&e->ring, c->how.out_at, &c->replay);
	a.replay = bufq_len(&c->replay);
	r = exec_put_attached(&c->to_host, &a);
	assert(r == 0);
	c->looks = c->begun = true;
	exec_resume(x, c);
}

int exec_take_attach(struct execs *x, struct exec_conn *c, struct slice payload)
{
	bool by_name;
	struct exec *e;
	int r = exec_get_attach(payload, &c->how);

	if (r < 0)
		return r;
	by_name = c->how.session[0];
	e = by_name ? exec_find_kept(x, c->how.session) : find_token(x, c->how.token);
	if (!e) {
		exec_say_error(x, c, EXEC_NO_SESSION, "session not found");
		return 0;
	}
	if (c->how.look && by_name) {
		look_attach(x, c, e);
		return 0;
	}
	if (c->how.look)
		return -EBADMSG;
	/* The previous client cannot take it back automatically. */
	if (by_name)
		memcpy(e->token, c->how.token, EXEC_TOKEN);
	c->attaching = c->acks = true;
	exec_take_over(x, c, e);
	return 0;
}

int exec_take_ack(struct execs *x, struct exec_conn *c, struct slice payload)
{
	struct exec *e = c->e;
	uint64_t at;
	int r = exec_get_offset(payload, &at);

	if (r < 0 || !c->acks || at > c->sent || at < e->acked)
		return -EBADMSG;
	e->acked = at;
	if (!exec_is_kept(e))
		exec_ring_drop(&e->ring, at);
	exec_watch_output(x, e);
	return 0;
}

void exec_send_away(struct execs *x, struct exec_conn *c, enum exec_reason reason)
{
	struct exec *e = c->e;
	int r = 0;

	if (!c->last)
		r = exec_put_detached(&c->to_host, reason);
	assert(r == 0);
	c->last = true;
	c->e = NULL;
	e->conn = NULL;
	exec_resume(x, c);
}

void exec_resize(struct execs *x, struct exec *e, uint16_t rows, uint16_t cols)
{
	if (rows == 0 || cols == 0 || !e->tty || e->out.fd < 0)
		return;
	e->rows = rows;
	e->cols = cols;
	if (exec_is_kept(e))
		loop_timer_clear(x->loop, &e->aside);
	spawn_resize(e->out.fd, rows, cols);
}

void exec_on_aside(struct execs *x, struct exec *e)
{
	if (exec_is_kept(e))
		exec_resize(x, e, e->rows, e->cols);
	else if (!e->conn)
		exec_hang_up(x, e);
}

void exec_park_all(struct execs *x)
{
	for (struct exec *e = next_used(x, NULL); e; e = next_used(x, e)) {
		struct exec_conn *c = e->conn;

		if (!c || !c->acks)
			continue;
		e->parked = true;
		/* EXIT is being sent: if it is lost, the client requests it again. */
		if (c->last)
			continue;
		exec_send_away(x, c, EXEC_SUSPENDED);
		exec_watch_output(x, e);
	}
}

void exec_unpark(struct execs *x)
{
	for (struct exec *e = next_used(x, NULL); e; e = next_used(x, e)) {
		if (e->parked && !e->conn && !exec_is_kept(e))
			exec_set_aside(x, e, EXEC_CLAIM_MS);
		e->parked = false;
	}
}

bool exec_kept(const struct execs *x, size_t i, struct exec_shown *ret)
{
	for (const struct exec *e = x->slots; e < x->slots + EXEC_MAX; e++) {
		if (e->state == EXEC_FREE || e->state == EXEC_ORPHAN || !exec_is_kept(e) || i-- > 0)
			continue;
		*ret = (struct exec_shown){.name = e->name,
			.attached = e->conn != NULL,
			.ended = e->state == EXEC_ENDED,
			.signalled = WIFSIGNALED(e->wait_status)};
		ret->value = (uint8_t)(ret->signalled ? WTERMSIG(e->wait_status)
						      : WEXITSTATUS(e->wait_status));
		return true;
	}
	return false;
}
