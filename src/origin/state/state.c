/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <errno.h>
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

ssize_t exchange_recv(struct exchange *x, uint8_t *buf, size_t n)
{
	struct slice in = mux_peek(x->edge);

	if (!in.n)
		return mux_is_at_end(x->edge) ? 0 : -EAGAIN;
	n = MIN(n, in.n);
	memcpy(buf, in.p, n);
	mux_take(x->edge, n);
	return (ssize_t)n;
}

int exchange_flush(struct exchange *x, uint64_t *n_sent)
{
	size_t n;

	if (!out_len(&x->to_edge))
		return 0;
	if (!x->edge || x->edge->is_gone)
		return -EPIPE;
	n = mux_send(x->edge, out_peek(&x->to_edge), (struct slice){0});
	out_consume(&x->to_edge, n);
	*n_sent += n;
	return out_len(&x->to_edge) ? -EAGAIN : 0;
}

void exchange_close_edge(struct exchange *x)
{
	if (x->edge)
		mux_close(TAKE(x->edge));
	out_done(&x->to_edge);
}
