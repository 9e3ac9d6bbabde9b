/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One memory budget for all memory that the guest and its servers can make sbx-edge allocate.
 *
 * budget_alloc.c counts all allocations. Each queue and each arena has its own limit, but the sum
 * of these limits exceeds the memory limit of sbx-edge. So the sum is checked before each step that
 * can grow a connection. Above the budget, sbx-edge closes the connections that use the most memory
 * and reports the reason to the keeper. Not reading the port would not help: the guest's window
 * updates, which drain the queues, arrive on the same port.
 */
#include "edge.h"

#include <assert.h>
#include "lib/os/jail/jail.h"
#include "lib/secret/mint/mint.h"

/* Closes down to this, so that one more step does not trigger it again. */
#define LOW (EDGE_BUDGET / 16 * 15)
/* A smaller gain does not justify closing a connection. */
#define MIN_WORTH 4096

/* What one step can add before the next check of the sum: 100 streams of HTTP/2 with their heads
 * and bodies, or a record for each intercepted connection. */
#define STREAMS_STEP (H2_MAX_STREAMS * (HTTP_ARENA_SIZE + H2_WINDOW + H2_TAIL_SIZE + 4096))
#define RECORDS_STEP (NET_MAX_CONNS * 2 * OPEN_RECORDS)
#define STEP MAX(STREAMS_STEP, RECORDS_STEP)
/* malloc may hold as much again in unusable fragments. */
static_assert(2 * (EDGE_BUDGET + STEP) <= JAIL_EDGE_AS, "the budget is used up first");

/* Memory that closing connections does not free: streams of sbx.ctl, names, leaves, asks. An ask
 * with a target is freed with its connection. */
#define FIXED                                                                           \
	(EDGE_MAX_STREAMS * WIRE_STREAM_WINDOW + SYNTH_MAX_BYTES + SYNTH_N_ADDRS * 32 + \
		MINT_MAX_LEAVES * 2 * MINT_MAX_CERT +                                   \
		NET_MAX_CONNS *                                                         \
			(2 * (sizeof(struct edge_ask) - EDGE_MAX_TARGET) + sizeof(struct conn)))
static_assert(FIXED <= EDGE_BUDGET / 2, "half of the budget is left for connections");

/* Estimates what closing it frees. Streams of HTTP/2 are connections themselves. */
static size_t worth_budget(const struct conn *c)
{
	size_t n =
		conn_queue_size(&c->in) + conn_queue_size(&c->out) + http_worth(c) + open_worth(c);

	return c->reader && c->reader->buf ? n + CANON_MAX_HEAD : n;
}

static struct conn *find_largest(const struct net *net)
{
	struct conn *largest = NULL;
	size_t most = MIN_WORTH;

	for (size_t i = 0; i < NET_MAX_CONNS; i++) {
		size_t n = net->conns[i] ? worth_budget(net->conns[i]) : 0;

		if (n > most) {
			most = n;
			largest = net->conns[i];
		}
	}
	return largest;
}

void budget_keep(struct edge *e)
{
	struct conn *c;

	if (!budget_is_over(e))
		return;
	while (budget_used >= MIN(LOW, e->net->budget) && (c = find_largest(e->net))) {
		budget_report(e, c, "closed the largest connection");
		conn_reset(e, c);
	}
}
