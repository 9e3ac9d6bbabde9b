/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_asks - asks of edge without an answer, and exchanges that are open at egress.
 *
 * How      Two tables of fixed size: a ring of asks in order of arrival, and the exchanges,
 *          numbered by slot and generation. The texts of an ask are mostly short and are kept on
 *          the heap: the record that follows the result of egress needs them again.
 * Trust    Input: ids chosen by edge, possibly compromised; numbers returned by egress.
 * Limits   EDGE_MAX_ASKS, EGRESS_MAX_OPEN.
 */
#include "network.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/mem.h"

#define PLACE_BITS 11
#define MAX_GEN (UINT32_MAX >> PLACE_BITS)
static_assert(EGRESS_MAX_OPEN <= 1 << PLACE_BITS, "a place fits into its bits");

static struct net_ask *nth_ask(struct net *n, size_t i)
{
	return &n->asks[(n->first + i) % EDGE_MAX_ASKS];
}

int asks_add(struct net *n, uint32_t id, const struct edge_ask *ask)
{
	if (n->n_asks + n->n_held == EDGE_MAX_ASKS)
		return -EOVERFLOW;
	/* Usually there are none, or a few. */
	for (size_t i = 0; i < n->n_asks; i++)
		if (nth_ask(n, i)->id == id)
			return -EEXIST;
	for (size_t i = 0; i < n->n_held; i++)
		if (n->held[i].id == id)
			return -EEXIST;
	*nth_ask(n, n->n_asks) = (struct net_ask){.id = id, .what = ask_copy_new(ask)};
	n->n_asks++;
	return 0;
}

bool asks_is_empty(const struct net *n)
{
	return n->n_asks == 0;
}

bool asks_first_is_open(const struct net *n)
{
	return ask_copy_is_open(n->asks[n->first].what);
}

void asks_take(struct net *n, struct net_ask *ret_ask, struct edge_ask *ret)
{
	struct net_ask *a = nth_ask(n, 0);

	ask_copy_get(a->what, ret);
	free(TAKE(a->what));
	*ret_ask = *a;
	*a = (struct net_ask){0};
	n->first = (n->first + 1) % EDGE_MAX_ASKS;
	n->n_asks--;
}

void asks_clear(struct net *n)
{
	for (size_t i = 0; i < n->n_asks; i++) {
		free(nth_ask(n, i)->what);
		*nth_ask(n, i) = (struct net_ask){0};
	}
	n->first = n->n_asks = 0;
	for (size_t i = 0; i < n->n_held; i++)
		free(TAKE(n->held[i].what));
	n->n_held = 0;
}

/* ---- asks that wait for a person ---- */

bool asks_hold(struct net *n, uint32_t id, const struct edge_ask *ask, uint64_t since_ms)
{
	if (n->n_held == KEEPER_MAX_HELD)
		return false;
	n->held[n->n_held++] =
		(struct net_ask){.id = id, .what = ask_copy_new(ask), .held_ms = since_ms};
	return true;
}

/* The ring has room: it and the held ones are EDGE_MAX_ASKS in all. */
static void put_back(struct net *n, struct net_ask ask)
{
	*nth_ask(n, n->n_asks++) = ask;
}

void asks_resume(struct net *n)
{
	for (size_t i = 0; i < n->n_held; i++)
		put_back(n, n->held[i]);
	n->n_held = 0;
}

void asks_drop(struct net *n, uint32_t id)
{
	for (size_t i = 0; i < n->n_held; i++) {
		struct net_ask ask = n->held[i];

		if (ask.id != id)
			continue;
		n->held[i] = n->held[--n->n_held];
		ask.is_gone = true;
		put_back(n, ask);
		return;
	}
	for (size_t i = 0; i < n->n_asks; i++)
		if (nth_ask(n, i)->id == id)
			nth_ask(n, i)->is_gone = true;
}

uint64_t asks_held_until(const struct net *n)
{
	uint64_t until = UINT64_MAX;

	for (size_t i = 0; i < n->n_held; i++)
		until = MIN(until, n->held[i].held_ms + HOLD_INLINE_MS);
	return until;
}

void exchanges_init(struct net *n)
{
	/* The first slot is on top. */
	for (size_t i = 0; i < EGRESS_MAX_OPEN; i++)
		n->free[i] = (uint16_t)(EGRESS_MAX_OPEN - 1 - i);
	n->n_free = EGRESS_MAX_OPEN;
}

int exchanges_add(struct net *n, const struct edge_ask *ask, uint32_t *ret_id)
{
	uint16_t at;

	if (n->n_free == 0)
		return -EMFILE;
	at = n->free[--n->n_free];
	n->exchanges[at].what = ask_copy_new(ask);
	n->exchanges[at].has_result = n->exchanges[at].is_socket = false;
	n->exchanges[at].has_login = false;
	*ret_id = n->exchanges[at].gen << PLACE_BITS | at;
	return 0;
}

struct exchange *exchanges_find(struct net *n, uint32_t id)
{
	uint32_t at = id & ((1u << PLACE_BITS) - 1);
	struct exchange *ex = at < EGRESS_MAX_OPEN ? &n->exchanges[at] : NULL;

	return ex && ex->what && ex->gen == id >> PLACE_BITS ? ex : NULL;
}

void exchanges_get_ask(const struct exchange *ex, struct edge_ask *ret)
{
	ask_copy_get(ex->what, ret);
}

static void remove_at(struct net *n, uint16_t at)
{
	struct exchange *ex = &n->exchanges[at];

	free(TAKE(ex->what));
	ex->gen = (ex->gen + 1) & MAX_GEN;
	n->free[n->n_free++] = at;
}

void exchanges_remove(struct net *n, uint32_t id)
{
	struct exchange *ex = exchanges_find(n, id);

	if (ex)
		remove_at(n, (uint16_t)(ex - n->exchanges));
}

void exchanges_clear(struct net *n)
{
	for (uint16_t i = 0; i < EGRESS_MAX_OPEN; i++)
		if (n->exchanges[i].what)
			remove_at(n, i);
}
