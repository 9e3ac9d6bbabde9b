/* SPDX-License-Identifier: Apache-2.0 */
/* DNS: one query per stream, answered only from the policy and the table of addresses. */
#include "tunnel_internal.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/clock.h"
#include "lib/wire/dns/dns_reply.h"

static const uint8_t gateway_v4[4] = {198, 18, 0, 1};
static const uint8_t gateway_v6[16] = {0xfd, 0x5b, 0x78, 0x62, 0x19, 0xd3, 0, 1, [15] = 1};
static const char *const gateway_names[] = {"gateway.docker.internal", "gateway.sbx.internal"};

bool name_is_gateway(const struct addr *a)
{
	return memcmp(a->b, a->n == 4 ? gateway_v4 : gateway_v6, a->n) == 0;
}

bool name_is_synthetic(const struct addr *a)
{
	static const uint8_t v6[] = SYNTH_V6_PREFIX;

	return a->n == 4 ? a->b[0] == 198 && (a->b[1] & 0xfe) == 18
			 : memcmp(a->b, v6, sizeof(v6)) == 0;
}

static int parse_name(const struct conn *c, struct dns_query *ret)
{
	/* Nothing was consumed, so the queue is contiguous. */
	return dns_query_parse(
		bufq_peek(&c->in), c->over_udp ? DNS_OVER_UDP : DNS_OVER_STREAM, ret);
}

static void answer_the_name(struct edge *e, struct conn *c, const struct dns_query *q, int status,
	const struct dns_facts *facts)
{
	uint8_t buf[DNS_MAX_REPLY];
	size_t n;

	if (dns_reply_build(q, status, facts, buf, sizeof(buf), &n) == 0)
		conn_say(e, c, slice_of(buf, n));
	conn_end(e, c);
}

static void answer_reverse(struct edge *e, struct conn *c, const struct dns_query *q)
{
	struct dns_facts facts = {.verdict = DNS_ALLOWED};
	struct dns_addr a;
	struct addr addr;
	uint32_t id;

	if (dns_query_reverse(q, &a)) {
		addr = (struct addr){.n = a.n};
		memcpy(addr.b, a.b, sizeof(addr.b));
		if (name_is_gateway(&addr))
			facts.ptr = slice_from_str(gateway_names[0]);
		else if (synth_find_addr(e->net->synth, slice_of(a.b, a.n), &id, &facts.ptr) < 0)
			facts.ptr = (struct slice){0};
	}
	answer_the_name(e, c, q, 0, &facts);
}

static bool is_gateway_name(const struct host *h)
{
	for (size_t i = 0; i < ARRAY_LEN(gateway_names); i++) {
		if (slice_eq_str(host_slice(h), gateway_names[i]))
			return true;
	}
	return false;
}

static void refuse_name(
	struct edge *e, struct conn *c, const struct dns_query *q, const char *fault)
{
	struct dns_facts facts = {.verdict = DNS_DENIED, .why = slice_from_str(fault)};

	conn_report_fault(e, c, EDGE_ASK_DNS, fault);
	answer_the_name(e, c, q, 0, &facts);
}

static void answer_name(struct edge *e, struct conn *c, const struct dns_query *q)
{
	static const struct dns_facts gateway = {
		.verdict = DNS_ALLOWED, .v4 = gateway_v4, .v6 = gateway_v6};
	struct edge_ask ask = {.kind = EDGE_ASK_DNS, .via = EDGE_VIA_TRANSPARENT};
	struct host *h = &c->target.host;

	if (host_from_wire(dns_query_host(q), h, NULL) < 0) {
		refuse_name(e, c, q, "not a host name");
		return;
	}
	c->target.given = true;
	if (h->is_addr) {
		refuse_name(e, c, q, "an address is not a name");
	} else if (is_gateway_name(h)) {
		answer_the_name(e, c, q, 0, &gateway);
	} else {
		memcpy(ask.host, h->name, (size_t)h->n + 1);
		ask.qtype = q->type;
		c->state = CONN_ASKED;
		conn_set_timer(e, c, 0);
		conn_ask(e, c, &ask);
	}
}

void name_on_end(struct edge *e, struct conn *c)
{
	struct dns_query q;
	int status = parse_name(c, &q);

	if (status < 0) {
		conn_end(e, c); /* an empty body: no answer is given */
		return;
	}
	switch (status == 0 ? dns_query_want(&q) : DNS_WANT_NOTHING) {
	case DNS_WANT_NOTHING:
		if (status == 0 && q.kind == DNS_NAME_INVALID)
			conn_report_fault(e, c, EDGE_ASK_DNS, "not a host name");
		answer_the_name(e, c, &q, status, NULL);
		return;
	case DNS_WANT_REVERSE:
		answer_reverse(e, c, &q);
		return;
	case DNS_WANT_POLICY:
		answer_name(e, c, &q);
		return;
	}
}

/* Formats the reason as an extended DNS error. */
static void put_why(char *buf, size_t size, const struct conn *c, const struct edge_verdict *v)
{
	if (v->reason[0])
		(void)snprintf(buf, size, "Blocked by network policy: %s", v->reason);
	else if (v->rule[0])
		(void)snprintf(buf, size, "Blocked by network policy: denied: rule \"%s\" matched",
			v->rule);
	else
		(void)snprintf(buf, size,
			"Blocked by network policy: no applicable policies for "
			"op(action=net:connect:tcp, resource=net:domain:%s)",
			c->target.host.name);
}

void name_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict)
{
	struct dns_facts facts = {.verdict = DNS_DENIED};
	struct synth_addr addr;
	struct dns_query q;
	char why[EDGE_MAX_REASON + 128];
	int status = parse_name(c, &q);

	put_why(why, sizeof(why), c, verdict);
	facts.why = slice_from_str(why);
	if (verdict->allowed) {
		facts = (struct dns_facts){.verdict = DNS_ALLOWED, .v4 = addr.v4, .v6 = addr.v6};
		if (synth_assign(
			    e->net->synth, host_slice(&c->target.host), clock_mono_ms(), &addr) < 0)
			facts = (struct dns_facts){.verdict = DNS_UNDECIDED,
				.why = slice_from_str("all synthetic addresses are in use")};
	}
	answer_the_name(e, c, &q, status, &facts);
}
