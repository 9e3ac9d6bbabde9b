/* SPDX-License-Identifier: Apache-2.0 */
/* Redirected connections: /may/ADDR/PORT before the connection is accepted, /tcp/ADDR/PORT for its
 * data. */
#include "tunnel_internal.h"
#include "sniff.h"

#include <errno.h>
#include "src/edge/http/http.h"

/* "ADDR/PORT" */
static int parse_caught(const char *text, struct addr *ret_addr, uint16_t *ret_port)
{
	const char *slash = strrchr(text, '/');

	if (!slash || addr_parse(slice_of(text, (size_t)(slash - text)), ret_addr) < 0)
		return -EINVAL;
	return host_parse_port(slice_from_str(slash + 1), ret_port);
}

/* Finds the name of a synthesized address; the stored name is canonical already. */
static int find_name(struct edge *e, struct conn *c, const struct addr *a)
{
	struct slice name;
	uint32_t id;

	if (synth_find_addr(e->net->synth, slice_of(a->b, a->n), &id, &name) < 0 ||
		host_from_wire(name, &c->target.host, NULL) < 0 ||
		synth_hold(e->net->synth, id) < 0)
		return -ENOENT;
	c->synth_id = id;
	c->holds_synth = true;
	return 0;
}

static const char *set_target(struct edge *e, struct conn *c, const struct addr *a)
{
	c->target.given = true;
	host_from_addr(a, &c->target.host);
	if (name_is_gateway(a))
		return "the gateway address accepts only ports 53 and 3128";
	if (name_is_synthetic(a) && find_name(e, c, a) < 0)
		return "no host name is assigned to the address";
	return NULL;
}

int caught_open(struct edge *e, struct conn *c, const char *addr_and_port)
{
	const char *fault;
	struct addr a;
	int r = parse_caught(addr_and_port, &a, &c->target.port);

	if (r < 0)
		return r;
	c->via = EDGE_VIA_TRANSPARENT;
	c->state = CONN_SNIFFING;
	fault = set_target(e, c, &a);
	if (fault) {
		conn_report_fault(e, c, EDGE_ASK_TUNNEL, fault);
		return -EPERM;
	}
	conn_set_timer(e, c, CONN_SNIFF_MS);
	return 0;
}

static void answer_may(struct edge *e, struct conn *c, bool allowed)
{
	if (wire_reply(e->net->port.wire, c->sid, allowed ? 200 : 403) < 0)
		conn_reset(e, c);
	else
		conn_end(e, c);
}

int caught_may(struct edge *e, struct conn *c, const char *addr_and_port)
{
	struct edge_ask ask = {.kind = EDGE_ASK_CONNECT, .via = EDGE_VIA_TRANSPARENT};
	const char *fault;
	struct addr a;
	int r = parse_caught(addr_and_port, &a, &c->target.port);

	if (r < 0)
		return r;
	c->via = EDGE_VIA_TRANSPARENT;
	fault = set_target(e, c, &a);
	if (fault) {
		conn_report_fault(e, c, EDGE_ASK_CONNECT, fault);
		answer_may(e, c, false);
		return 0;
	}
	memcpy(ask.host, c->target.host.name, (size_t)c->target.host.n + 1);
	ask.port = c->target.port;
	c->state = CONN_ASKED;
	conn_ask(e, c, &ask);
	return 0;
}

void caught_on_may(struct edge *e, struct conn *c, const struct edge_verdict *verdict)
{
	answer_may(e, c, verdict->allowed);
}

static void ask_caught(struct edge *e, struct conn *c, enum edge_proto proto)
{
	c->proto = proto;
	conn_ask_tunnel(e, c);
}

void caught_on_bytes(struct edge *e, struct conn *c)
{
	/* Nothing was consumed yet, so the queue is contiguous. */
	switch (sniff_first(bufq_peek(&c->in))) {
	case SNIFF_MORE:
		if (c->in_end)
			ask_caught(e, c, EDGE_PROTO_UNKNOWN);
		return;
	case SNIFF_HTTP:
		http_begin(e, c);
		return;
	case SNIFF_TLS:
		ask_caught(e, c, EDGE_PROTO_TLS);
		return;
	case SNIFF_OTHER:
		ask_caught(e, c, EDGE_PROTO_TCP);
		return;
	}
}

void caught_on_timer(struct edge *e, struct conn *c)
{
	ask_caught(e, c, EDGE_PROTO_UNKNOWN);
}
