/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the one server: requested from the keeper, verified, used by exchanges, kept for
 * later ones. */
#include "protocol.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/clock.h"

static struct loop_key line_key(const struct origin *o, const struct line *l, enum origin_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = l->gen, .idx = (uint32_t)(l - o->lines)};
}

static struct line *line_find(struct origin *o, struct loop_key key)
{
	struct line *l = &o->lines[key.idx];

	return l->state > LINE_WANTED && l->gen == key.gen ? l : NULL;
}

static void set_timer(struct origin *o, struct line *l, uint64_t ms)
{
	loop_timer_set(
		&o->loop, &l->timer, clock_mono_ms() + ms, line_key(o, l, ORIGIN_EV_LINE_TIMER));
}

static bool needs_h1(const struct exchange *x)
{
	return x->talk->req.websocket || x->wants_h1;
}

bool line_has_any(const struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		if (o->lines[i].state == LINE_READY)
			return true;
	}
	return false;
}

/* ---- the end of a line ---- */

void line_drop(struct origin *o, struct line *l)
{
	uint32_t gen = l->gen;

	if (l->proto)
		l->ops->done(o, l);
	tls_end(l);
	if (l->fd >= 0)
		loop_del(&o->loop, l->fd);
	fd_close(&l->fd);
	loop_timer_clear(&o->loop, &l->timer);
	*l = (struct line){.gen = gen + 1, .fd = -1};
	o->lines_due = true;
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		if (o->exchanges[i].line == l)
			o->ops->on_lost(o, &o->exchanges[i]);
	}
}

static bool is_waiting(const struct exchange *x, bool h1_only)
{
	return x->state == EXCHANGE_LINE && needs_h1(x) == h1_only;
}

/* The longest waiting exchange after `from`. */
static struct exchange *next_waiting(struct origin *o, uint64_t from)
{
	struct exchange *found = NULL;

	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		struct exchange *x = &o->exchanges[i];

		if (x->state == EXCHANGE_LINE && x->order >= from &&
			(!found || x->order < found->order))
			found = x;
	}
	return found;
}

/* Without another line, all waiting exchanges fail immediately. With one, only the first fails, so
 * that each failure ends one wait. */
static void fail_line(
	struct origin *o, struct line *l, enum origin_outcome outcome, const char *why)
{
	bool h1_only = l->h1_only, others;
	uint64_t from = 0;
	struct exchange *x;

	line_drop(o, l);
	others = line_has_any(o);
	while ((x = next_waiting(o, from))) {
		from = x->order + 1;
		if (!is_waiting(x, h1_only))
			continue;
		o->ops->fail(o, x, outcome, "%s, port %u: %s", o->config.host, o->config.port, why);
		if (others)
			return;
	}
}

/* ---- giving lines ---- */

static struct line *find_line(struct origin *o, const struct exchange *x)
{
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		struct line *l = &o->lines[i];

		if (l->state != LINE_READY || l->is_closing || !l->ops->can_take(l))
			continue;
		if (needs_h1(x) && l->ops->kind != LINE_H1)
			continue;
		/* a failure on a used line is retried on a new one */
		if (x->n_tries && (l->n_served || l->n_exchanges))
			continue;
		return l;
	}
	return NULL;
}

static unsigned count_pending(const struct origin *o, bool h1_only)
{
	unsigned n = 0;

	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		const struct line *l = &o->lines[i];

		n += (l->state == LINE_WANTED || l->state == LINE_HANDSHAKE) &&
		     l->h1_only == h1_only;
	}
	return n;
}

/* Returns a free slot, if necessary of an idle line. */
static struct line *find_place(struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		if (o->lines[i].state == LINE_FREE)
			return &o->lines[i];
	}
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		if (o->lines[i].state == LINE_READY && o->lines[i].n_exchanges == 0) {
			line_drop(o, &o->lines[i]);
			return &o->lines[i];
		}
	}
	return NULL;
}

/* Until the server is known to serve one exchange at a time, one line is requested, not one per
 * exchange. */
static void want_line(struct origin *o, unsigned n_waiting, bool h1_only)
{
	unsigned most = h1_only || o->spoken == LINE_H1 ? n_waiting : MIN(n_waiting, 1);

	for (unsigned n = count_pending(o, h1_only); n < most; n++) {
		struct line *l = find_place(o);

		if (!l || !o->keeper->want(o, ++o->n_wants))
			return;
		*l = (struct line){.state = LINE_WANTED,
			.id = o->n_wants,
			.gen = l->gen,
			.fd = -1,
			.h1_only = h1_only};
	}
}

void line_serve(struct origin *o)
{
	unsigned n_waiting[2] = {0};
	uint64_t from = 0;
	struct exchange *x;

	o->lines_due = false;
	while ((x = next_waiting(o, from))) {
		struct line *l = find_line(o, x);

		from = x->order + 1;
		if (l)
			o->ops->take_line(o, x, l);
		else
			n_waiting[needs_h1(x)]++;
	}
	want_line(o, n_waiting[0], false);
	want_line(o, n_waiting[1], true);
	/* Exchanges of dropped lines are served already. */
	o->lines_due = o->lines_due && next_waiting(o, 0) && !o->control.is_due;
}

static unsigned count_idle(const struct origin *o)
{
	unsigned n = 0;

	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++)
		n += o->lines[i].state == LINE_READY && o->lines[i].n_exchanges == 0;
	return n;
}

void line_leave(struct origin *o, struct exchange *x)
{
	struct line *l = x->line;
	uint32_t gen = l->gen;

	x->line = NULL;
	l->n_exchanges--;
	l->ops->leave(o, l, x);
	o->lines_due = true;
	if (l->gen == gen && l->n_exchanges == 0)
		line_settle(o, l);
}

void line_settle(struct origin *o, struct line *l)
{
	if (l->is_closing || count_idle(o) > LINE_MAX_IDLE)
		line_drop(o, l);
	else
		set_timer(o, l, ORIGIN_KEEP_MS);
}

/* ---- the making of a line ---- */

static void shake_line(struct origin *o, struct line *l)
{
	const char *why = "";
	int r = tls_handshake(o, l, &why);

	if (r == -EAGAIN)
		return;
	if (r == -EKEYREJECTED) {
		char text[ORIGIN_MAX_TEXT];

		(void)snprintf(
			text, sizeof(text), "%s: %s", origin_outcome_text(ORIGIN_BAD_CERT), why);
		fail_line(o, l, ORIGIN_BAD_CERT, text);
		return;
	}
	if (r < 0 || !l->ops->begin(o, l)) {
		fail_line(o, l, ORIGIN_NO_TLS, why);
		return;
	}
	l->state = LINE_READY;
	if (!l->h1_only)
		o->spoken = l->ops->kind;
	set_timer(o, l, ORIGIN_KEEP_MS);
	o->lines_due = true;
}

static void take_socket(struct origin *o, struct line *l, int fd)
{
	int r = fd_set_nonblock(fd, true);

	l->fd = fd;
	l->state = LINE_HANDSHAKE;
	if (r == 0)
		r = loop_add(&o->loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			line_key(o, l, ORIGIN_EV_LINE));
	if (r == 0)
		r = tls_begin(o, l);
	if (r < 0) {
		fail_line(o, l, ORIGIN_NO_CONNECTION, "cannot use the socket");
		return;
	}
	set_timer(o, l, ORIGIN_HANDSHAKE_MS);
	shake_line(o, l);
}

int line_on_socket(struct origin *o, struct ipc_msg *msg)
{
	struct egress_result result;
	struct line *l = NULL;
	int r = origin_get_socket(msg, &result);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		if (o->lines[i].state == LINE_WANTED && o->lines[i].id == msg->id)
			l = &o->lines[i];
	}
	if (!l)
		return -EBADMSG;
	if (result.outcome != EGRESS_CONNECTED) {
		fail_line(o, l,
			result.outcome == EGRESS_TIMEOUT ? ORIGIN_TIMEOUT : ORIGIN_NO_CONNECTION,
			result.text[0] ? result.text : egress_outcome_text(result.outcome));
		return 0;
	}
	(void)snprintf(l->addr, sizeof(l->addr), "%s", result.addr);
	take_socket(o, l, TAKE_FD(msg->fd));
	return 0;
}

/* ---- events ---- */

void line_on_event(struct origin *o, struct loop_key key, uint32_t events)
{
	struct line *l = line_find(o, key);

	if (!l)
		return;
	l->is_hung_up = l->is_hung_up || events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	if (l->state == LINE_HANDSHAKE)
		shake_line(o, l);
	else
		l->ops->on_event(o, l);
}

void line_again(struct origin *o, struct line *l)
{
	/* OpenSSL may have buffered data, for which epoll reports nothing */
	set_timer(o, l, 0);
}

void line_wake(struct origin *o, struct line *l, uint64_t ms)
{
	if (!l->timer.pos || l->timer.at_ms > clock_mono_ms() + ms)
		set_timer(o, l, ms);
}

void line_on_timer(struct origin *o, struct loop_key key)
{
	struct line *l = line_find(o, key);

	if (!l)
		return;
	if (l->state == LINE_HANDSHAKE)
		fail_line(o, l, ORIGIN_TIMEOUT, "the TLS handshake timed out");
	else if (l->n_exchanges)
		l->ops->on_event(o, l);
	else
		line_drop(o, l);
}
