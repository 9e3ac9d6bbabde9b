/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define REQ_ARENA 16384

struct loop_key exchange_key(const struct egress *e, const struct exchange *x, enum egress_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = x->gen, .idx = (uint32_t)(x - e->exchanges)};
}

/* A stale event carries an older generation. */
struct exchange *exchange_find(struct egress *e, struct loop_key key)
{
	struct exchange *x = &e->exchanges[key.idx];
	bool is_live = x->state != EXCHANGE_FREE && x->state != EXCHANGE_OVER;

	return is_live && x->gen == key.gen ? x : NULL;
}

void exchange_set_timer(struct egress *e, struct exchange *x, uint64_t ms)
{
	loop_timer_set(
		&e->loop, &x->timer, clock_mono_ms() + ms, exchange_key(e, x, EGRESS_EV_TIMER));
}

struct policy_op exchange_op(const struct egress *e, const struct exchange *x)
{
	return (struct policy_op){.kind = RULE_NETWORK,
		.host = &x->host,
		.port = x->port,
		.now_ms = clock_wall_ms(),
		.locals = &e->locals,
		.is_own = x->is_own};
}

struct talk *talk_new(void)
{
	struct talk *t = xcalloc(1, sizeof(*t));

	arena_init(&t->req_arena, REQ_ARENA);
	arena_init(&t->resp_arena, HTTP_ARENA_SIZE);
	canon_reader_init(&t->frames);
	return t;
}

void talk_free(struct talk *t)
{
	if (!t)
		return;
	free(t->head);
	arena_done(&t->req_arena);
	arena_done(&t->resp_arena);
	canon_reader_done(&t->frames);
	free(t);
}
