/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/vm/store/store.h"

static struct keeper_ports to_message(const struct spec *spec)
{
	struct keeper_ports list = {.n = MIN(spec->n_ports, (size_t)KEEPER_MAX_PORTS)};

	for (size_t i = 0; i < list.n; i++) {
		(void)!str_copy(list.v[i].ip, sizeof(list.v[i].ip), spec->ports[i].host_ip);
		list.v[i].host_port = spec->ports[i].host_port;
		list.v[i].port = spec->ports[i].port;
	}
	return list;
}

const struct keeper_port *ports_find_state(const struct keeper *k, const struct spec_port *p)
{
	for (size_t i = 0; k && k->ports && i < k->ports->n; i++) {
		const struct keeper_port *s = &k->ports->v[i];

		if (s->host_port == p->host_port && s->port == p->port &&
			strcmp(s->ip, p->host_ip) == 0)
			return s;
	}
	return NULL;
}

/* Whether a socket of the keeper conflicts with p. */
static bool has_open(const struct keeper *k, const struct spec_port *p)
{
	for (size_t i = 0; k->ports && i < k->ports->n; i++) {
		const struct keeper_port *s = &k->ports->v[i];
		struct spec_port open = {.host_port = s->bound};

		(void)!str_copy(open.host_ip, sizeof(open.host_ip), s->ip);
		if (s->code == 0 && spec_port_meets(&open, p))
			return true;
	}
	return false;
}

bool ports_find_owner(
	struct sbxd *d, const char *id, const struct spec_port *p, char *buf, size_t n)
{
	const char *parked = wakes_find(d->wakes, id, p);

	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		const struct keeper *k = d->keepers->slot[i];
		AUTO_ROW struct store_row row = {0};

		if (!k->used || strcmp(k->id, id) == 0 || !has_open(k, p) ||
			store_get(d->store, k->id, &row, NULL) < 0)
			continue;
		(void)snprintf(buf, n, "%s", row.spec.name);
		return true;
	}
	AUTO_ROW struct store_row row = {0};

	if (!parked || store_get(d->store, parked, &row, NULL) < 0)
		return false;
	(void)snprintf(buf, n, "%s", row.spec.name);
	return true;
}

void ports_explain(
	struct sbxd *d, const char *id, const struct spec_port *p, int code, char *buf, size_t n)
{
	char name[SPEC_MAX_NAME + 1];

	if (code == -EADDRINUSE && ports_find_owner(d, id, p, name, sizeof(name)))
		(void)snprintf(buf, n, "address already in use by sandbox %s", name);
	else
		(void)snprintf(buf, n, "%s",
			code == -EADDRINUSE ? "address already in use by another program"
			: code == -EACCES
				? "permission denied: ports below 1024 require a privilege that "
				  "sbx does not have"
			: code == -EADDRNOTAVAIL ? "address not available on this host"
						 : strerror(-code));
}

bool ports_can_send(const struct keeper *k)
{
	return k->sock >= 0 && k->has_hello && !k->other_build && !k->asked_stop &&
	       k->state.phase != KEEPER_STOPPING && k->state.phase != KEEPER_STOPPED;
}

uint32_t ports_send(struct sbxd *d, struct keeper *k, const struct spec *spec)
{
	struct keeper_ports list = to_message(spec);
	uint32_t ask = keeper_next_ask(d);

	k->ports_due = !ports_can_send(k) || keeper_ask_ports(k->sock, ask, &list) < 0;
	return k->ports_due ? 0 : ask;
}

void ports_push(struct sbxd *d, struct keeper *k)
{
	AUTO_ROW struct store_row row = {0};

	if (k->ports_due && ports_can_send(k) && store_get(d->store, k->id, &row, NULL) == 0)
		(void)ports_send(d, k, &row.spec);
}

int ports_on_message(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_ports list;
	int r = keeper_get_ports_are(msg, &list);

	if (r < 0)
		return r;
	if (!k->ports)
		k->ports = xcalloc(1, sizeof(*k->ports));
	*k->ports = list;
	d->keepers->ops->on_change(d, k->id);
	d->keepers->ops->on_ports(d, k, msg->id);
	return 0;
}
