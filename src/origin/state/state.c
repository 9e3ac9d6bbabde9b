/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include "lib/base/clock.h"

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
