/* SPDX-License-Identifier: Apache-2.0 */
#include "egress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/rules/head/head.h"
#include "lib/wire/http/canon/canon_named.h"

/* ---- the end ---- */

static void drop_fd(struct egress *e, int *fd)
{
	if (*fd >= 0)
		loop_del(&e->loop, *fd);
	fd_close(fd);
}

/* Everything except the output to edge. */
static void drop_upstream(struct egress *e, struct exchange *x)
{
	dial_free(e, x);
	talk_free(TAKE(x->talk));
	free(TAKE(x->socks));
	login_drop(x);
	x->login_due = false;
	tunnel_drop(e, x);
	canon_reader_done(&x->frames);
	drop_fd(e, &x->upstream_fd);
	out_done(&x->to_upstream);
}

static void exchange_finish(struct egress *e, struct exchange *x)
{
	drop_upstream(e, x);
	drop_fd(e, &x->edge_fd);
	out_done(&x->to_edge);
	loop_timer_clear(&e->loop, &x->timer);
	x->state = EXCHANGE_OVER;
	x->closed_due = true;
	control_report(e, x);
}

/* The timer limits it. */
static void drain_edge(struct egress *e, struct exchange *x)
{
	int r = out_end(&x->to_edge, x->edge_fd, &x->edge_shut);

	if (r == 0)
		exchange_finish(e, x);
	else if (r > 0) /* more data: continue after other events */
		(void)!loop_mod(&e->loop, x->edge_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			exchange_key(e, x, EGRESS_EV_EDGE));
}

static void exchange_end(struct egress *e, struct exchange *x)
{
	drop_upstream(e, x);
	x->state = EXCHANGE_ENDING;
	exchange_set_timer(e, x, EGRESS_LINGER_MS);
	drain_edge(e, x);
}

static void exchange_tell(struct egress *e, struct exchange *x, enum egress_outcome outcome,
	const struct addr *addr, const char *text)
{
	struct egress_result *result;

	if (x->result_said)
		return;
	x->result_said = true;
	result = x->result_due = xcalloc(1, sizeof(*result));
	result->outcome = outcome;
	if (addr && addr->n)
		addr_print(addr, result->addr);
	(void)snprintf(result->text, sizeof(result->text), "%s", text);
	control_report(e, x);
}

static uint16_t status_of(enum egress_outcome outcome)
{
	switch (outcome) {
	case EGRESS_DENIED_POLICY:
	case EGRESS_DENIED_ADDRESS:
	case EGRESS_BAD_REQUEST:
		return 403;
	case EGRESS_TIMEOUT:
	case EGRESS_NO_RESOLVER:
		return 504;
	default:
		return 502;
	}
}

static void PRINTF_LIKE(5, 6) exchange_fail(struct egress *e, struct exchange *x,
	enum egress_outcome outcome, const struct addr *addr, const char *fmt, ...)
{
	bool is_raw = x->state == EXCHANGE_TUNNEL;
	bool is_said = x->talk && x->talk->is_said;
	char text[EGRESS_MAX_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	out_clean_text(text);
	exchange_tell(e, x, outcome, addr, text);
	if (is_raw || outcome == EGRESS_GONE || x->kind == EGRESS_SOCKET) {
		exchange_finish(e, x);
		return;
	}
	if (is_said)
		out_put_reset(&x->to_edge);
	else
		out_put_refusal(&x->to_edge, status_of(outcome), text);
	exchange_end(e, x);
}

/* ---- the beginning ---- */

static struct exchange *find_free(struct egress *e)
{
	for (size_t i = 0; i < EGRESS_SLOTS; i++) {
		if (e->exchanges[i].state == EXCHANGE_FREE)
			return &e->exchanges[i];
	}
	return NULL;
}

/* The request must match the target that the keeper allowed; an OPEN whose host is not canonical
 * matches nothing. */
static void take_target(struct exchange *x, const struct egress_open *open)
{
	x->kind = open->kind;
	x->port = open->port;
	x->ticket = open->ticket;
	if (host_from_wire(slice_from_str(open->host), &x->host, NULL) < 0 ||
		!slice_eq_str(host_slice(&x->host), open->host))
		x->host = (struct host){0};
}

/* The rules about requests; ret_why has POLICY_MAX_EXPLAIN bytes. A connection of the kind SOCKET
 * is for sbx-origin, which decides on each request in it. */
static bool passes_head(struct egress *e, const struct exchange *x, char *ret_why)
{
	struct policy_op op = exchange_op(e, x);
	const struct head_sender sender = {.policy = e->policy, .op = &op};
	char rule[HEAD_MAX_RULE];

	if (x->kind == EGRESS_HTTP)
		return !x->talk || head_may_send(&sender, &x->talk->req, &e->arena, ret_why,
					   POLICY_MAX_EXPLAIN);
	if (x->kind == EGRESS_SOCKET || !head_is_needed(e->policy, &op, NULL, rule))
		return true;
	(void)snprintf(ret_why, POLICY_MAX_EXPLAIN,
		"no tunnel to %s: requests to it are read, because of the rule %s", x->host.name,
		rule);
	return false;
}

/* Decided again, by our own copy of the policy, before a packet is sent. */
static void go_out(struct egress *e, struct exchange *x)
{
	struct policy_op op = exchange_op(e, x);
	struct policy_decision decision;
	char text[POLICY_MAX_EXPLAIN];

	policy_decide(e->policy, &op, &decision);
	if (!decision.allowed) {
		policy_explain(&op, &decision, text, sizeof(text));
		exchange_fail(e, x, EGRESS_DENIED_POLICY, NULL, "%s", text);
		return;
	}
	if (!passes_head(e, x, text)) {
		exchange_fail(e, x, EGRESS_DENIED_POLICY, NULL, "%s", text);
		return;
	}
	dial_begin(e, x);
}

/* There is no request: the target comes from the keeper. */
static void open_socket(struct egress *e, struct exchange *x)
{
	if (e->n_open > EGRESS_MAX_OPEN)
		exchange_fail(e, x, EGRESS_BUSY, NULL, "%s", egress_outcome_text(EGRESS_BUSY));
	else if (x->host.n == 0)
		exchange_fail(e, x, EGRESS_BAD_REQUEST, NULL, "%s",
			egress_outcome_text(EGRESS_BAD_REQUEST));
	else
		go_out(e, x);
}

void exchange_open(struct egress *e, uint32_t id, const struct egress_open *open, int fd)
{
	/* One slot more than may be open, and no message is read while a report is due: so a slot
	 * is always free. */
	struct exchange *x = find_free(e);
	uint32_t gen = x->gen;
	int r;

	*x = (struct exchange){.state = EXCHANGE_HEAD,
		.id = id,
		.gen = gen,
		.edge_fd = fd,
		.upstream_fd = -1,
		.given_fd = -1,
		.way = {{.pipe = {-1, -1}}, {.pipe = {-1, -1}}}};
	take_target(x, open);
	canon_reader_init(&x->frames);
	if (e->n_open++ == 0)
		loop_timer_set(&e->loop, &e->recheck, clock_mono_ms() + EGRESS_RECHECK_MS,
			(struct loop_key){.kind = EGRESS_EV_RECHECK});
	if (x->kind == EGRESS_SOCKET) {
		open_socket(e, x);
		return;
	}
	r = fd_set_nonblock(fd, true);
	/* Edge-triggered: one registration for its lifetime, and one event for a hang-up. */
	if (r == 0)
		r = loop_add(&e->loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			exchange_key(e, x, EGRESS_EV_EDGE));
	if (r < 0) {
		exchange_tell(e, x, EGRESS_GONE, NULL, "cannot use the socket of sbx-edge");
		exchange_finish(e, x);
		return;
	}
	if (e->n_open > EGRESS_MAX_OPEN) {
		uint64_t n = 0;

		exchange_tell(e, x, EGRESS_BUSY, NULL, egress_outcome_text(EGRESS_BUSY));
		out_put_refusal(&x->to_edge, 502, egress_outcome_text(EGRESS_BUSY));
		(void)!out_flush(&x->to_edge, fd, &n);
		exchange_finish(e, x);
		return;
	}
	exchange_set_timer(e, x, EGRESS_HEAD_MS);
}

/* ---- the request ---- */

static bool is_decided(const struct egress *e, const struct exchange *x, const struct http_req *req)
{
	struct policy_op op = exchange_op(e, x);
	char wants[CANON_NAMED_NAMES];

	head_get_wants(e->policy, &op, NULL, wants);
	return out_is_decided(&x->ticket, req, slice_from_str(wants));
}

/* Whether edge requests exactly what the keeper allowed. */
static bool is_as_allowed(
	const struct egress *e, const struct exchange *x, const struct http_req *req)
{
	struct host host;

	if ((x->kind == EGRESS_TUNNEL) != (req->form == HTTP_FORM_AUTHORITY))
		return false;
	if (x->kind == EGRESS_HTTP && !is_decided(e, x, req))
		return false;
	if (host_from_wire(req->host, &host, NULL) < 0 || !slice_eq(host_slice(&host), req->host))
		return false;
	return slice_eq(host_slice(&host), host_slice(&x->host)) && req->port == x->port;
}

/* An HTTP request lives until it was written; its text is in the copied payload. */
static int take_request(struct egress *e, struct exchange *x, struct slice payload)
{
	struct talk *t = talk_new();
	int r;

	x->talk = t;
	t->head = xmalloc(payload.n);
	memcpy(t->head, payload.p, payload.n);
	r = canon_get_req(slice_of(t->head, payload.n), &t->req_arena, &t->req);
	if (r < 0 || !is_as_allowed(e, x, &t->req))
		return -EBADMSG;
	/* Intercepted TLS is handled by sbx-origin. */
	if (x->kind == EGRESS_HTTP && t->req.scheme != HTTP_SCHEME_HTTP)
		return -EBADMSG;
	return canon_flow_req(&t->up, &t->req);
}

static void on_request(struct egress *e, struct exchange *x, const struct canon_frame *frame)
{
	if (frame->kind != CANON_HEAD || frame->stream != EGRESS_STREAM || x->host.n == 0 ||
		take_request(e, x, frame->payload) < 0) {
		exchange_fail(e, x, EGRESS_BAD_REQUEST, NULL, "%s",
			egress_outcome_text(EGRESS_BAD_REQUEST));
		return;
	}
	canon_reader_done(&x->frames);
	if (x->kind == EGRESS_TUNNEL)
		talk_free(TAKE(x->talk));
	go_out(e, x);
}

static void read_request(struct egress *e, struct exchange *x)
{
	struct canon_frame frame;
	int r = out_read_request(x->edge_fd, &x->frames, &frame);

	if (r < 0)
		exchange_fail(e, x, EGRESS_GONE, NULL, "%s", egress_outcome_text(EGRESS_GONE));
	else if (r > 0)
		on_request(e, x, &frame);
}

/* ---- events ---- */

void exchange_on_edge(struct egress *e, struct exchange *x, uint32_t events)
{
	bool is_gone = events & (EPOLLHUP | EPOLLERR);

	switch (x->state) {
	case EXCHANGE_HEAD:
		read_request(e, x);
		break;
	case EXCHANGE_RESOLVING:
	case EXCHANGE_DIALING:
	case EXCHANGE_UPSTREAM:
		if (is_gone)
			exchange_fail(
				e, x, EGRESS_GONE, NULL, "%s", egress_outcome_text(EGRESS_GONE));
		break;
	case EXCHANGE_TUNNEL:
		tunnel_on_edge(e, x, events);
		break;
	case EXCHANGE_HTTP:
		if (is_gone)
			exchange_finish(e, x);
		else
			request_pump(e, x);
		break;
	case EXCHANGE_ENDING:
		drain_edge(e, x);
		break;
	case EXCHANGE_FREE:
	case EXCHANGE_OVER:
		break;
	}
}

void exchange_on_upstream(struct egress *e, struct exchange *x, uint32_t events)
{
	if (x->state == EXCHANGE_TUNNEL)
		tunnel_pump(e, x);
	else if (x->state == EXCHANGE_HTTP)
		request_pump(e, x);
	else if (x->state == EXCHANGE_UPSTREAM && x->login)
		login_pump(e, x);
	else if (x->state == EXCHANGE_UPSTREAM && x->socks)
		socks_pump(e, x);
	else if (x->state == EXCHANGE_UPSTREAM)
		proxy_pump(e, x);
}

void exchange_on_timer(struct egress *e, struct exchange *x)
{
	switch (x->state) {
	case EXCHANGE_HEAD:
		exchange_fail(e, x, EGRESS_BAD_REQUEST, NULL, "timed out waiting for the request");
		break;
	case EXCHANGE_RESOLVING:
	case EXCHANGE_DIALING:
		dial_on_timer(e, x);
		break;
	case EXCHANGE_UPSTREAM:
		exchange_fail(e, x, EGRESS_PROXY_DOWN, &x->addr,
			"upstream proxy %s did not respond", e->proxy.name);
		break;
	case EXCHANGE_HTTP:
		exchange_fail(
			e, x, EGRESS_TIMEOUT, &x->addr, "%s stopped sending data", x->host.name);
		break;
	default:
		exchange_finish(e, x);
		break;
	}
}

static void exchange_login(struct egress *e, struct exchange *x)
{
	x->login_due = true;
	control_report(e, x);
}

static void exchange_give(struct egress *e, struct exchange *x)
{
	loop_del(&e->loop, x->upstream_fd);
	x->given_fd = TAKE_FD(x->upstream_fd);
	x->give_until = clock_mono_ms() + EGRESS_GIVE_MS;
	exchange_tell(e, x, EGRESS_CONNECTED, &x->addr, egress_outcome_text(EGRESS_CONNECTED));
	exchange_finish(e, x);
}

static void exchange_ready(struct egress *e, struct exchange *x);

static void exchange_connected(struct egress *e, struct exchange *x)
{
	loop_timer_clear(&e->loop, &x->timer);
	if (x->is_proxied && e->config.proxy == EGRESS_PROXY_SOCKS) {
		socks_begin(e, x);
		return;
	}
	if (x->kind != EGRESS_HTTP && x->is_proxied) {
		proxy_begin(e, x);
		return;
	}
	exchange_ready(e, x);
}

static void exchange_ready(struct egress *e, struct exchange *x)
{
	if (x->kind == EGRESS_SOCKET) {
		exchange_give(e, x);
		return;
	}
	if (x->kind != EGRESS_HTTP || !x->is_proxied || e->config.proxy != EGRESS_PROXY_HTTP)
		exchange_tell(
			e, x, EGRESS_CONNECTED, &x->addr, egress_outcome_text(EGRESS_CONNECTED));
	if (x->kind == EGRESS_HTTP) {
		request_begin(e, x);
		return;
	}
	tunnel_put_head(x);
	tunnel_run(e, x);
}

const struct exchange_ops exchange_ops = {
	.fail = exchange_fail,
	.finish = exchange_finish,
	.end = exchange_end,
	.tell = exchange_tell,
	.connected = exchange_connected,
	.ready = exchange_ready,
	.login = exchange_login,
	.give = exchange_give,
};

/* ---- a new policy, or a rule that has run out ---- */

void exchange_recheck(struct egress *e, struct exchange *x)
{
	struct policy_op op;
	struct policy_decision decision;
	char text[POLICY_MAX_EXPLAIN];
	struct addr addr;

	if (x->state < EXCHANGE_RESOLVING || x->state > EXCHANGE_HTTP)
		return;
	op = exchange_op(e, x);
	policy_decide(e->policy, &op, &decision);
	if (!decision.allowed) {
		policy_explain(&op, &decision, text, sizeof(text));
		exchange_fail(e, x, EGRESS_DENIED_POLICY, NULL, "%s", text);
		return;
	}
	if (x->state < EXCHANGE_HTTP && !passes_head(e, x, text)) {
		exchange_fail(e, x, EGRESS_DENIED_POLICY, NULL, "%s", text);
		return;
	}
	if (dial_is_over(e, x, &addr))
		exchange_fail(e, x, EGRESS_DENIED_ADDRESS, &addr, "%s",
			egress_outcome_text(EGRESS_DENIED_ADDRESS));
}
