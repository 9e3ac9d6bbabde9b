/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_policy - the policy of origins, and origins of hosts without a credential.
 *
 * How      An origin gets both tables after ROOTS, and again when the policy changes, before any
 *          OPEN that was decided by the new one. A host that is intercepted only because a rule
 *          needs the head of requests has an origin without a service and without a value.
 * Trust    As origin_link.c.
 * Never    Gives such an origin a value: its binding has none (needs_on_need).
 */
#include "credential.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"

static char no_service[] = "";
static const struct binding bare = {.text = no_service};

const struct binding *origins_binding(const struct keeper *k, const struct edge_ask *ask)
{
	const struct binding *b = creds_find(k->creds, ask->host, ask->port);

	if (b)
		return b;
	return gate_needs_head(k->gate, ask->host, ask->port, clock_wall_ms()) ? &bare : NULL;
}

bool origin_is_bare(const struct origin *o)
{
	return o->binding.name[0] == '\0';
}

/* A response that has begun cannot be taken back, but it ends. */
static bool has_denied(struct keeper *k, const struct origin *o)
{
	static struct edge_ask ask;

	for (size_t i = 0; i < ORIGIN_MAX_OPEN; i++) {
		if (!o->exchanges[i].what)
			continue;
		ask_copy_get(o->exchanges[i].what, &ask);
		if (!gate_passes_head(
			    k->gate, &ask, o->exchanges[i].ticket.is_judged, clock_wall_ms()))
			return true;
	}
	return false;
}

void origins_set_policy(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		if (!o->worker.alive)
			continue;
		if (has_denied(k, o)) {
			worker_stop(k, &o->worker, "the policy no longer allows a request");
			continue;
		}
		o->is_policy_due = true;
		origins_push(k, o);
	}
}

static int send_pack(const struct keeper *k, struct origin *o)
{
	const struct pack *pack = gate_pack(k->gate, o->host, o->port);
	AUTO_CLOSE int file = -1, again = -1;
	int r;

	if (!pack && !o->has_pack)
		return 0;
	file = sealed_file_make("pack", slice_from_str(pack ? pack->text : ""));
	again = sealed_file_open(file);
	r = again < 0 ? -EIO : chan_send_plain(o->worker.sock, ORIGIN_PACK, 0, again);
	o->has_pack = r == 0 ? pack != NULL : o->has_pack;
	return r;
}

/* If the second table has to wait, all is sent again. */
int origin_push_policy(struct keeper *k, struct origin *o)
{
	int r;

	if (!o->is_policy_due)
		return 0;
	r = send_pack(k, o);
	if (r == 0)
		r = k->origins->send_tables(k, o->worker.sock, ++o->n_policies, origin_ask_policy);
	o->is_policy_due = r < 0;
	return r;
}
