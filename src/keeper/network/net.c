/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - network requests of edge: lib/rules/gate decides, egress connects.
 *
 * How      An ASK is queued in a ring and answered in order, a few per turn of the loop. An allowed
 *          TUNNEL or HTTP gets a socket pair: OPEN sends one end to egress, the VERDICT sends the
 *          other to edge. A tunnel to a host with a credential gets no socket pair: edge intercepts
 *          its TLS, and each request in it is a stream of the channel to an origin (origin_link.c),
 *          which edge gets with CHANNEL before the first such VERDICT. If edge or egress
 *          does not read, the verdict and all later ones wait. ASKs are still read, because edge
 *          does not read while it cannot send. While egress restarts, ASKs that need it wait for
 *          the rest of its grace period. ASKs above KEEPER_ASK_RATE wait after KEEPER_ASK_BURST is
 *          used up: each one costs a decision and a record, and costs the guest nothing.
 * Trust    edge may be compromised by the guest, egress by an upstream server. An unknown number, a
 *          second result, an id in use and too many ASKs are protocol violations.
 * Limits   EDGE_MAX_ASKS unanswered, EGRESS_MAX_OPEN open, KEEPER_NET_BATCH a turn,
 *          KEEPER_EGRESS_GRACE_MS, KEEPER_ASK_BURST and KEEPER_ASK_RATE. After net_init,
 *          KEEPER_LOG_LINES lines in keeper.log, because each blocked request may log a line.
 *          An ask that needs a person's approval waits apart from the ring (holds.h). It is decided
 *          again when that has changed.
 * Never    Allows a request before its decision is in the audit log (gate_decide_bound).
 */
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/base/trace.h"

#define CROWDED "the user has too many descriptors in flight: try again"

void net_init(struct keeper *k)
{
	log_limit(KEEPER_LOG_LINES, KEEPER_LOG_PER_MINUTE);
	k->net->pending.edge_fd = k->net->pending.egress_fd = -1;
	exchanges_init(k->net);
}

static void drop_pending(struct net_pending *p)
{
	fd_close(&p->edge_fd);
	fd_close(&p->egress_fd);
	p->used = false;
}

/* An allowed ask failed: informs edge and records the failure. */
static void give_up(
	struct keeper *k, const struct edge_ask *ask, enum egress_outcome outcome, const char *why)
{
	struct net_pending *p = &k->net->pending;
	struct egress_result result = {.outcome = outcome};

	(void)snprintf(result.text, sizeof(result.text), "%s", why);
	gate_result(k->gate, ask, &result, clock_wall_ms());
	fd_close(&p->edge_fd);
	fd_close(&p->egress_fd);
	p->verdict.allowed = false;
	p->verdict.no_rule_helps = true;
	p->verdict.count = 1;
	p->verdict.rule[0] = '\0';
	(void)snprintf(p->verdict.reason, sizeof(p->verdict.reason), "%s", why);
}

static void open_exchange(struct keeper *k, const struct edge_ask *ask)
{
	struct net_pending *p = &k->net->pending;
	int fds[2];

	if (k->netpolicy->fault[0]) {
		give_up(k, ask, EGRESS_UNREACHABLE, k->netpolicy->fault);
		return;
	}
	if (!egress_is_up(k)) {
		give_up(k, ask, EGRESS_UNREACHABLE,
			"sbx-egress is not running: see keeper.log of this sandbox");
		return;
	}
	netpolicy_check_host(k);
	if (exchanges_add(k->net, ask, &p->exchange) < 0) {
		give_up(k, ask, EGRESS_BUSY, egress_outcome_text(EGRESS_BUSY));
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
		exchanges_remove(k->net, p->exchange);
		give_up(k, ask, EGRESS_BUSY, "no file descriptors available on the host");
		return;
	}
	p->has_exchange = true;
	p->edge_fd = fds[0];
	p->egress_fd = fds[1];
	p->open.kind = ask->kind == EDGE_ASK_HTTP ? EGRESS_HTTP : EGRESS_TUNNEL;
	p->open.port = ask->port;
	(void)!str_copy(p->open.host, sizeof(p->open.host), ask->host);
	if (p->open.kind == EGRESS_HTTP)
		edge_ask_ticket(ask, &p->open.ticket);
}

/* For requests inside intercepted TLS; sbx-origin has the other end of the socket, or a clerk
 * if the content must be read. */
static void open_at_origin(struct keeper *k, const struct edge_ask *ask)
{
	struct net_pending *p = &k->net->pending;
	struct origin_stream stream = {.edge_end = -1};
	struct err err = {0};
	int r;

	if (k->netpolicy->fault[0]) {
		give_up(k, ask, EGRESS_UNREACHABLE, k->netpolicy->fault);
		return;
	}
	if (gate_push(k->gate))
		r = clerks_open(k, ask, gate_push(k->gate), &stream.edge_end, &err);
	else
		r = origins_open(k, ask, &stream, &err);
	if (r < 0) {
		give_up(k, ask, r == -EMFILE || r == -EBUSY ? EGRESS_BUSY : EGRESS_UNREACHABLE,
			err_text(&err, r));
		return;
	}
	p->verdict.channel = stream.channel;
	p->verdict.stream = stream.stream;
	p->edge_fd = stream.edge_end;
}

/* An exchange that egress did not accept. */
static void give_up_exchange(struct keeper *k, const char *why)
{
	struct net_pending *p = &k->net->pending;
	struct exchange *ex = exchanges_find(k->net, p->exchange);
	struct edge_ask ask;

	if (!ex)
		return;
	exchanges_get_ask(ex, &ask);
	exchanges_remove(k->net, p->exchange);
	give_up(k, &ask, EGRESS_UNREACHABLE, why);
}

/* False: egress does not read now. */
static bool push_open(struct keeper *k)
{
	struct net_pending *p = &k->net->pending;
	int r;

	if (p->egress_fd < 0)
		return true;
	r = egress_ask_open(k->egress->worker.sock, p->exchange, &p->open, p->egress_fd);
	if (r == -EAGAIN) {
		egress_want_room(k);
		return false;
	}
	if (r < 0)
		give_up_exchange(k, r == -ETOOMANYREFS ? CROWDED : "sbx-egress is restarting");
	fd_close(&p->egress_fd);
	return true;
}

/* The kernel rejected the descriptor. Egress sees its end close. */
static void refuse_pending(struct keeper *k, int r)
{
	struct net_pending *p = &k->net->pending;
	struct exchange *ex = p->has_exchange ? exchanges_find(k->net, p->exchange) : NULL;
	struct egress_result result = {.outcome = EGRESS_BUSY};
	struct edge_ask ask;

	(void)snprintf(result.text, sizeof(result.text), "cannot pass the connection: %s",
		r == -ETOOMANYREFS ? CROWDED : strerror(-r));
	if (ex) {
		exchanges_get_ask(ex, &ask);
		gate_result(k->gate, &ask, &result, clock_wall_ms());
	}
	fd_close(&p->edge_fd);
	if (p->verdict.stream)
		origins_forget_channel(k, p->verdict.channel);
	p->verdict.channel = p->verdict.stream = 0;
	p->verdict.allowed = false;
	p->verdict.no_rule_helps = true;
	(void)snprintf(p->verdict.reason, sizeof(p->verdict.reason), "%s", result.text);
}

static int send_verdict(struct keeper *k)
{
	struct net_pending *p = &k->net->pending;
	bool is_channel = p->verdict.stream && p->edge_fd >= 0;
	int sock = k->edge->worker.sock, r = 0;

	if (is_channel)
		r = chan_send_plain(sock, EDGE_CHANNEL, p->verdict.channel, p->edge_fd);
	if (r < 0)
		return r;
	if (is_channel)
		fd_close(&p->edge_fd);
	return edge_answer_ask(sock, p->ask, &p->verdict, p->edge_fd);
}

/* Returns false if edge or egress does not read now; net_run is called when it does. */
static bool push_pending(struct keeper *k)
{
	struct net_pending *p = &k->net->pending;
	int r;

	if (!push_open(k))
		return false;
	r = send_verdict(k);
	if (r < 0 && r != -EAGAIN && p->edge_fd >= 0) {
		refuse_pending(k, r);
		r = send_verdict(k);
	}
	if (r == -EAGAIN) {
		edge_want_room(k);
		return false;
	}
	/* On any other error edge is exiting, and its pidfd reports that. */
	drop_pending(p);
	return true;
}

static const uint64_t ask_us = 1000000 / KEEPER_ASK_RATE;

/* A restarted edge does not get a new burst. */
static bool is_too_fast(struct keeper *k)
{
	uint64_t now = clock_mono_us();

	k->net->spent_us = MAX(k->net->spent_us, now);
	if (k->net->spent_us - now < KEEPER_ASK_BURST * ask_us)
		return false;
	loop_timer_set(&k->loop, &k->net->timer, clock_mono_ms() + KEEPER_ASK_PAUSE_MS,
		(struct loop_key){.kind = EV_TIMER_NET});
	return true;
}

/* As in the audit log, without the path of the request. */
static void trace_decision(uint32_t id, const struct edge_ask *ask, const struct edge_verdict *v)
{
	static const char *const kinds[EDGE_N_ASK_KINDS] = {[EDGE_ASK_TUNNEL] = "tunnel",
		[EDGE_ASK_HTTP] = "http",
		[EDGE_ASK_DNS] = "dns",
		[EDGE_ASK_AGENT] = "ssh-agent",
		[EDGE_ASK_CONNECT] = "connect",
		[EDGE_ASK_LINK] = "link"};

	trace_line(TRACE_NET, "ask=%u %s%s%s %s:%u %s%s%s", id, kinds[ask->kind],
		ask->method[0] ? " " : "", ask->method, ask->host, ask->port,
		v->wants_id && !v->allowed ? "needs headers"
		: !v->allowed		   ? "deny"
		: v->opened		   ? "intercept"
					   : "allow",
		v->rule[0] ? " by " : "", v->rule);
}

/* Waits for a person, with the id and the time of `a`. False: too many wait. */
static bool hold_ask_of(struct keeper *k, const struct net_ask *a, const struct edge_ask *ask)
{
	if (!asks_hold(k->net, a->id, ask, a->held_ms ? a->held_ms : clock_mono_ms()))
		return false;
	k->net->pending.used = false;
	holds_arm(k);
	return true;
}

/* Sets the verdict by the policy and by what a person has answered. False: the ask waits. */
static bool decide_ask(struct keeper *k, const struct net_ask *a, const struct edge_ask *ask)
{
	struct edge_verdict *v = &k->net->pending.verdict;
	struct gate_binding binding = vault_look(k, ask);
	const struct hold_text *what;

	gate_decide_bound(k->gate, ask, &binding, clock_wall_ms(), v);
	what = gate_asked(k->gate);
	if (!what)
		return true;
	switch (holds_take(k, what, ask, a->held_ms, v)) {
	case HOLDS_WAIT:
		if (hold_ask_of(k, a, ask))
			return false;
		holds_refuse_crowd(k, what, ask, v);
		return true;
	case HOLDS_PASS:
		gate_decide_approved(k->gate, ask, &binding, k->holds->passed, clock_wall_ms(), v);
		return true;
	default:
		return true;
	}
}

/* Its client has left while it waited for a person: nothing is allowed any more. */
static bool is_dropped(const struct net_ask *a, struct edge_verdict *v)
{
	if (!a->is_gone)
		return false;
	*v = (struct edge_verdict){.no_rule_helps = true, .reason = "the client has left"};
	return true;
}

static void answer_first(struct keeper *k)
{
	static struct edge_ask ask;
	struct net_pending *p = &k->net->pending;
	struct net_ask a;

	asks_take(k->net, &a, &ask);
	p->ask = a.id;
	p->used = true;
	p->has_exchange = false;
	p->verdict.channel = p->verdict.stream = 0;
	k->net->spent_us += ask_us;
	if (is_dropped(&a, &p->verdict))
		return;
	if (ask.kind == EDGE_ASK_AGENT) { /* no policy: each signature is recorded instead */
		p->edge_fd = ssh_agent_open(k, &p->verdict);
		trace_decision(p->ask, &ask, &p->verdict);
		return;
	}
	record_check(k);
	if (ask.kind == EDGE_ASK_LINK) { /* no policy: a person decides about each */
		holds_take_link(k, &ask, &p->verdict);
		trace_decision(p->ask, &ask, &p->verdict);
		return;
	}
	if (!decide_ask(k, &a, &ask))
		return;
	trace_decision(p->ask, &ask, &p->verdict);
	if (!p->verdict.allowed && !p->verdict.wants_id)
		denied_note(k, &ask, &p->verdict);
	if (!p->verdict.allowed || p->verdict.opened || !edge_ask_has_socket(ask.kind))
		return;
	if (ask.tls)
		open_at_origin(k, &ask);
	else
		open_exchange(k, &ask);
}

static bool must_wait(struct keeper *k)
{
	uint64_t until = k->egress->lost_ms + KEEPER_EGRESS_GRACE_MS;

	if (!asks_first_is_open(k->net) || egress_is_up(k) || clock_mono_ms() >= until)
		return false;
	loop_timer_set(&k->loop, &k->net->timer, until, (struct loop_key){.kind = EV_TIMER_NET});
	return true;
}

void net_run(struct keeper *k)
{
	struct net *n = k->net;

	for (size_t i = 0; i < KEEPER_NET_BATCH; i++) {
		if (n->pending.used && !push_pending(k))
			return;
		if (asks_is_empty(n) || is_too_fast(k) || must_wait(k))
			return;
		answer_first(k);
	}
	/* The rest in the next turn. */
	loop_timer_set(
		&k->loop, &n->timer, clock_mono_ms(), (struct loop_key){.kind = EV_TIMER_NET});
}

int net_on_ask(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	static struct edge_ask ask;
	int r = edge_get_ask(msg, &ask);

	if (r < 0)
		return err_set(err, r, "sent an ASK that does not decode");
	if (k->net->pending.used && k->net->pending.ask == msg->id)
		r = -EEXIST;
	else
		r = asks_add(k->net, msg->id, &ask);
	if (r == -EEXIST)
		return err_set(err, r, "used an id again before it was answered");
	k->net->last_ms = clock_mono_ms();
	if (r < 0)
		return err_set(err, r, "sent more than %d queries at the same time", EDGE_MAX_ASKS);
	net_run(k);
	return 0;
}

int net_on_gone(struct keeper *k, const struct ipc_msg *msg)
{
	int r = chan_get_plain(&edge_chan, msg, EDGE_GONE);

	if (r < 0)
		return r;
	/* A VERDICT may be on its way: then there is nothing to do. */
	asks_drop(k->net, msg->id);
	net_run(k);
	return 0;
}

int net_open_socket(struct keeper *k, const struct origin *o, uint32_t want, uint32_t *ret_exchange)
{
	struct edge_ask ask = {.kind = EDGE_ASK_TUNNEL, .proto = EDGE_PROTO_TLS, .port = o->port};
	struct egress_open open = {.kind = EGRESS_SOCKET, .port = o->port};
	struct exchange *ex;
	uint32_t id;
	int r;

	(void)!str_copy(ask.host, sizeof(ask.host), o->host);
	(void)!str_copy(open.host, sizeof(open.host), o->host);
	netpolicy_check_host(k);
	r = exchanges_add(k->net, &ask, &id);
	if (r < 0)
		return r;
	r = egress_ask_open(k->egress->worker.sock, id, &open, -1);
	if (r < 0) {
		exchanges_remove(k->net, id);
		return r;
	}
	ex = exchanges_find(k->net, id);
	ex->is_socket = true;
	ex->order = (struct conn_order){o->worker.idx, o->worker.gen, want};
	*ret_exchange = id;
	return 0;
}

/* An allowed name with an address that no rule allows: known only after egress has resolved it. */
static void note_refused_address(
	struct keeper *k, const struct edge_ask *ask, const struct egress_result *result)
{
	struct edge_verdict v = {.no_rule_helps = true};

	if (result->outcome != EGRESS_DENIED_ADDRESS)
		return;
	(void)snprintf(v.reason, sizeof(v.reason), "%s", result->text);
	(void)snprintf(v.sandbox, sizeof(v.sandbox), "%s", k->spec.name);
	denied_note(k, ask, &v);
}

int net_on_result(struct keeper *k, struct ipc_msg *msg)
{
	struct exchange *ex = exchanges_find(k->net, msg->id);
	struct egress_result result;
	struct edge_ask ask;
	int r = egress_get_result(msg, &result);

	if (r < 0 || !ex || ex->has_result)
		return -EBADMSG;
	ex->has_result = true;
	trace_line(TRACE_NET, "exchange=%u %s %s", msg->id, egress_outcome_text(result.outcome),
		result.addr);
	if (ex->is_socket)
		return conns_on_result(k, &ex->order, &result, TAKE_FD(msg->fd));
	if (msg->fd >= 0)
		return -EBADMSG;
	exchanges_get_ask(ex, &ask);
	gate_result(k->gate, &ask, &result, clock_wall_ms());
	note_refused_address(k, &ask, &result);
	return 0;
}

int net_on_closed(struct keeper *k, const struct ipc_msg *msg)
{
	uint64_t up, down;
	int r = egress_get_closed(msg, &up, &down);

	if (r < 0 || !exchanges_find(k->net, msg->id))
		return -EBADMSG;
	trace_line(TRACE_NET, "exchange=%u closed, %llu bytes sent, %llu received", msg->id,
		(unsigned long long)up, (unsigned long long)down);
	k->state.net_up += up;
	k->state.net_down += down;
	exchanges_remove(k->net, msg->id);
	k->net->last_ms = clock_mono_ms();
	return 0;
}

bool net_is_open(const struct net *n)
{
	return n->n_free < EGRESS_MAX_OPEN;
}

void net_on_edge_end(struct keeper *k)
{
	struct net_pending *p = &k->net->pending;

	/* OPEN was never sent, so egress will not report the end of this exchange. */
	if (p->used && p->egress_fd >= 0)
		exchanges_remove(k->net, p->exchange);
	drop_pending(p);
	origins_on_edge_end(k);
	asks_clear(k->net);
	loop_timer_clear(&k->loop, &k->net->timer);
}

void net_on_egress_end(struct keeper *k)
{
	struct net_pending *p = &k->net->pending;

	if (p->used && p->egress_fd >= 0)
		give_up_exchange(k, "sbx-egress is restarting");
	exchanges_clear(k->net);
	conns_on_egress_end(k);
	if (k->edge->worker.alive)
		net_run(k);
}
