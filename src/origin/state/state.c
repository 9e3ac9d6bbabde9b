/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct loop_key exchange_key(const struct origin *o, const struct exchange *x, enum origin_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = x->gen, .idx = (uint32_t)(x - o->exchanges)};
}

void exchange_set_timer(struct origin *o, struct exchange *x, uint64_t ms)
{
	loop_timer_set(
		&o->loop, &x->timer, clock_mono_ms() + ms, exchange_key(o, x, ORIGIN_EV_TIMER));
}

void exchange_want_line(struct origin *o, struct exchange *x)
{
	x->state = EXCHANGE_LINE;
	exchange_set_timer(o, x, ORIGIN_LINE_MS);
	o->lines_due = true;
}

static void watch_edge(struct origin *o, struct exchange *x, bool waits)
{
	x->edge_waits = waits;
	(void)!loop_mod(&o->loop, x->edge_fd, waits ? EDGE_EVENTS | EPOLLOUT : EDGE_EVENTS,
		exchange_key(o, x, ORIGIN_EV_EDGE));
}

void exchange_want_room(struct origin *o, struct exchange *x)
{
	watch_edge(o, x, true);
}

void exchange_ignore_room(struct origin *o, struct exchange *x)
{
	if (x->edge_waits && x->edge_fd >= 0)
		watch_edge(o, x, false);
}

ssize_t exchange_recv(struct exchange *x, uint8_t *buf, size_t n)
{
	if (!x->n_early)
		return recv(x->edge_fd, buf, n, MSG_DONTWAIT);
	n = MIN(n, x->n_early);
	memcpy(buf, x->early, n);
	memmove(x->early, x->early + n, x->n_early - n);
	x->n_early -= n;
	if (!x->n_early)
		free(TAKE(x->early));
	return (ssize_t)n;
}
