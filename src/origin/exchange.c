/* SPDX-License-Identifier: Apache-2.0 */
#include "origin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/rules/head/head.h"
#include "lib/wire/http/canon/canon_named.h"

/* A stale event carries an older generation. */
struct exchange *exchange_find(struct origin *o, struct loop_key key)
{
	struct exchange *x = &o->exchanges[key.idx];
	bool is_live = x->state != EXCHANGE_FREE && x->state != EXCHANGE_OVER;

	return is_live && x->gen == key.gen ? x : NULL;
}

/* ---- the end ---- */

static void tell_exchange(
	struct origin *o, struct exchange *x, enum origin_outcome outcome, const char *text)
{
	if (x->result_said)
		return;
	x->result_said = x->result_due = true;
	x->result.outcome = outcome;
	(void)snprintf(x->result.text, sizeof(x->result.text), "%s", text);
	control_report(o, x);
}

/* Everything except the output to edge. */
static void drop_server(struct origin *o, struct exchange *x)
{
	secret_done(&x->filled);
	if (x->line)
		line_leave(o, x);
	answer_scrub_done(o, x);
	if (x->token)
		token_drop(o, x);
	sign_free(o, x->talk);
	talk_free(TAKE(x->talk));
	canon_reader_done(&x->frames);
}

void exchange_finish(struct origin *o, struct exchange *x)
{
	/* while it has its id: this is the only report about it */
	tell_exchange(o, x, ORIGIN_GONE, origin_outcome_text(ORIGIN_GONE));
	drop_server(o, x);
	exchange_close_edge(o, x);
	loop_timer_clear(&o->loop, &x->timer);
	x->state = EXCHANGE_OVER;
	x->closed_due = true;
	control_report(o, x);
}

/* The timer limits it. */
static void drain_edge(struct origin *o, struct exchange *x)
{
	if (exchange_end_edge(o, x) == 0)
		exchange_finish(o, x);
}

static void end_exchange(struct origin *o, struct exchange *x)
{
	drop_server(o, x);
	x->state = EXCHANGE_ENDING;
	exchange_set_timer(o, x, ORIGIN_LINGER_MS);
	drain_edge(o, x);
}

static void exchange_tell_done(struct origin *o, struct exchange *x)
{
	tell_exchange(o, x, ORIGIN_DONE, origin_outcome_text(ORIGIN_DONE));
}

void exchange_end(struct origin *o, struct exchange *x)
{
	exchange_tell_done(o, x);
	if (exchange_is_settled(x))
		exchange_finish(o, x);
	else
		end_exchange(o, x);
}

static uint16_t status_of(enum origin_outcome outcome)
{
	switch (outcome) {
	case ORIGIN_BAD_REQUEST:
	case ORIGIN_DENIED_FOREIGN:
	case ORIGIN_DENIED_METHOD:
	case ORIGIN_DENIED_REQUEST:
	case ORIGIN_CANNOT_SIGN:
	case ORIGIN_NOT_SET:
	case ORIGIN_DENIED_RULE:
		return 403;
	case ORIGIN_TIMEOUT:
		return 504;
	default:
		return 502;
	}
}

void exchange_fail(
	struct origin *o, struct exchange *x, enum origin_outcome outcome, const char *fmt, ...)
{
	bool is_raw = x->state == EXCHANGE_RAW;
	bool is_said = x->talk && x->talk->is_said;
	char text[ORIGIN_MAX_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	out_clean_text(text);
	tell_exchange(o, x, outcome, text);
	if (is_raw || outcome == ORIGIN_GONE) {
		exchange_finish(o, x);
		return;
	}
	if (is_said)
		out_put_reset(&x->to_edge);
	else
		out_put_refusal(&x->to_edge, status_of(outcome), text);
	end_exchange(o, x);
}

/* ---- the beginning ---- */

static struct exchange *find_free(struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		if (o->exchanges[i].state == EXCHANGE_FREE)
			return &o->exchanges[i];
	}
	return NULL;
}

void exchange_open(struct origin *o, uint32_t id, const struct ticket *ticket, int clerk)
{
	/* One slot more than may be open, and no message is read while a report is due: so a slot
	 * is always free. */
	struct exchange *x = find_free(o);
	uint32_t gen = x->gen;

	*x = (struct exchange){.state = EXCHANGE_HEAD,
		.id = id,
		.gen = gen,
		.order = o->n_exchanges++,
		.ticket = *ticket};
	canon_reader_init(&x->frames);
	o->n_open++;
	if (exchange_open_edge(o, x, clerk) < 0) {
		exchange_finish(o, x);
		return;
	}
	if (o->n_open > ORIGIN_MAX_OPEN) {
		uint64_t n = 0;

		tell_exchange(o, x, ORIGIN_BUSY, origin_outcome_text(ORIGIN_BUSY));
		out_put_refusal(&x->to_edge, 502, origin_outcome_text(ORIGIN_BUSY));
		(void)!exchange_flush(o, x, &n);
		exchange_finish(o, x);
		return;
	}
	exchange_set_timer(o, x, ORIGIN_HEAD_MS);
}

/* ---- the request ---- */

static struct policy_op op_of(const struct origin *o)
{
	return (struct policy_op){.kind = RULE_NETWORK,
		.host = &o->host,
		.port = o->config.port,
		.now_ms = clock_wall_ms()};
}

static const struct pack *pack_of(const struct origin *o)
{
	return o->pack.name ? &o->pack : NULL;
}

/* An origin has exactly one host and port, with https. Of those, an exchange is for the one request
 * that the keeper decided. */
static bool is_ours(const struct origin *o, const struct exchange *x, const struct http_req *req)
{
	struct policy_op op = op_of(o);
	char wants[CANON_NAMED_NAMES];

	head_get_wants(o->policy, &op, pack_of(o), wants);
	return out_is_decided(&x->ticket, req, slice_from_str(wants)) &&
	       req->scheme == HTTP_SCHEME_HTTPS && req->port == o->config.port &&
	       slice_eq(req->host, host_slice(&o->host));
}

/* The request lives until it no longer may be sent again; its text is in the copied payload. */
static int take_request(struct origin *o, struct exchange *x)
{
	struct talk *t = x->talk;

	if (canon_get_req(slice_of(t->head, t->n_head), &t->req_arena, &t->req) < 0 ||
		!is_ours(o, x, &t->req))
		return -EBADMSG;
	return canon_flow_req(&t->up, &t->req);
}

static void keep_body(struct origin *o, struct exchange *x)
{
	struct http_resp go_on = {.status = 100};

	x->state = EXCHANGE_BODY;
	exchange_set_timer(o, x, ORIGIN_BODY_MS);
	/* only origin can send it: the server gets the request after its content is complete */
	if (x->talk->req.expect_continue && answer_put_head(x, &go_on) < 0) {
		exchange_finish(o, x);
		return;
	}
	talk_keep(o, x);
}

void exchange_on_kept(struct origin *o, struct exchange *x)
{
	sign_keep_end(x);
	exchange_want_line(o, x);
}

static void on_request(struct origin *o, struct exchange *x, bool is_head)
{
	char where[ORIGIN_MAX_WHERE], rule[ORIGIN_MAX_TEXT];
	struct policy_op op = op_of(o);
	const struct head_sender sender = {.policy = o->policy,
		.op = &op,
		.pack = pack_of(o),
		.is_judged = x->ticket.is_judged};
	enum origin_outcome outcome;
	bool is_token = false;
	const char *why;

	if (!is_head || take_request(o, x) < 0) {
		exchange_fail(
			o, x, ORIGIN_BAD_REQUEST, "%s", origin_outcome_text(ORIGIN_BAD_REQUEST));
		return;
	}
	canon_reader_done(&x->frames);
	/* Decided again, by our own copy of the policy, on what would be sent. */
	if (!head_may_send(&sender, &x->talk->req, &o->arena, rule, sizeof(rule))) {
		exchange_fail(o, x, ORIGIN_DENIED_RULE, "%s: %s", o->config.host, rule);
		return;
	}
	sign_read(o, x);
	outcome = slot_judge(o, x, where);
	if (outcome != ORIGIN_DONE) {
		exchange_fail(o, x, outcome, "%s: %s%s%s", o->config.host,
			origin_outcome_text(outcome), where[0] ? ": " : "", where);
		return;
	}
	refuse_find_captures(o, x);
	why = sign_refusal(x);
	if (token_is_for(o, x, &is_token) < 0)
		exchange_fail(o, x, ORIGIN_BAD_REQUEST,
			"%s: ambiguous path: possibly the token endpoint", o->config.host);
	else if (is_token)
		token_begin(o, x);
	else if (why)
		exchange_fail(o, x, ORIGIN_CANNOT_SIGN, "%s: %s", o->config.host, why);
	else if (sign_keeps_body(x))
		keep_body(o, x);
	else
		exchange_want_line(o, x);
}

static void copy_head(struct exchange *x, struct slice payload)
{
	struct talk *t = x->talk = talk_new();

	t->head = xmalloc(payload.n);
	t->n_head = payload.n;
	memcpy(t->head, payload.p, payload.n);
}

static void read_request(struct origin *o, struct exchange *x)
{
	struct canon_frame frame;
	struct slice in;
	int r = 0;

	while (r == 0) {
		ssize_t n = exchange_peek(x, &in);

		if (n == 0)
			exchange_finish(o, x);
		if (n <= 0)
			return;
		r = canon_reader_feed(&x->frames, &in, &frame);
		if (r == 1)
			copy_head(x, frame.payload);
		/* what follows it stays */
		exchange_take(x, (size_t)n - in.n);
	}
	on_request(o, x, r == 1 && frame.kind == CANON_HEAD && frame.stream == OUT_STREAM);
}

/* ---- sending it ---- */

/* Its line closed and nothing was sent. A server that closes each new line is not retried
 * forever. */
static void wait_anew(struct origin *o, struct exchange *x, bool was_new)
{
	x->n_lost += was_new;
	if (x->n_lost < ORIGIN_TRIES)
		exchange_want_line(o, x);
	else
		exchange_fail(o, x, ORIGIN_BAD_ANSWER, "%s: the server closes new connections",
			o->config.host);
}

/* Returns false if the exchange has ended. */
static bool fill_exchange(struct origin *o, struct exchange *x, struct value *v)
{
	const char *why = "";

	if (!x->slot)
		return true; /* a refresh, which token_fill has filled */
	if (x->slot->how == SERVICE_SIGV4) {
		if (slot_sign(o, x, v, &why) < 0) {
			exchange_fail(o, x, ORIGIN_CANNOT_SIGN, "%s: %s", o->config.host, why);
			return false;
		}
	} else if (slot_fill(o, x, v) < 0) {
		exchange_fail(o, x, ORIGIN_NO_VALUE,
			"%s: the credential is not a valid header value", o->config.host);
		return false;
	}
	return true;
}

/* The line is verified and the value available: the only place that sends a request. */
static void send_request(struct origin *o, struct exchange *x, struct value *v)
{
	struct line *l = x->line;
	int r;

	if (x->token && token_fill(x, v) < 0) {
		exchange_fail(
			o, x, ORIGIN_NO_VALUE, "%s: cannot send the refresh token", o->config.host);
		return;
	}
	if (v && sweep_pin(o, x, v) < 0) {
		exchange_fail(o, x, ORIGIN_NO_VALUE,
			"%s: cannot search the response for the credential", o->config.host);
		return;
	}
	if (v && !fill_exchange(o, x, v))
		return;
	x->state = EXCHANGE_TALK;
	x->n_tries++;
	exchange_set_timer(o, x, x->token ? ORIGIN_TOKEN_MS : ORIGIN_IDLE_MS);
	r = l->ops->start(o, l, x);
	slot_wipe(x);
	sign_wipe(x);
	if (r == -EPIPE) { /* nothing was sent: it was closed meanwhile */
		bool was_new = l->n_served == 0;

		x->n_tries--;
		line_leave(o, x);
		wait_anew(o, x, was_new);
		return;
	}
	if (r < 0) {
		exchange_fail(o, x, ORIGIN_BAD_REQUEST, "the request is too large");
		return;
	}
	if (v) {
		x->result.used = true;
		x->result.serial = v->frame.serial;
		(void)snprintf(x->result.slot, sizeof(x->result.slot), "%s",
			x->slot ? x->slot->name : "refresh");
	}
	talk_pump(o, x);
}

static void exchange_on_lost(struct origin *o, struct exchange *x)
{
	x->line = NULL;
	if (x->state == EXCHANGE_VALUE)
		wait_anew(o, x, true);
	else
		exchange_fail(o, x, ORIGIN_BAD_ANSWER, "%s: connection lost", o->config.host);
}

static void exchange_take_line(struct origin *o, struct exchange *x, struct line *l)
{
	struct value *v = NULL;

	x->line = l;
	l->n_exchanges++;
	(void)snprintf(x->result.addr, sizeof(x->result.addr), "%s", l->addr);
	if (x->slot || token_needs_value(x)) {
		v = value_ask(o, x->which, l);
		if (!v) {
			x->state = EXCHANGE_VALUE;
			exchange_set_timer(o, x, ORIGIN_VALUE_MS);
			return;
		}
	}
	send_request(o, x, v);
}

static void exchange_on_value(struct origin *o, struct exchange *x, const char *why_not)
{
	if (why_not)
		exchange_fail(o, x, ORIGIN_NO_VALUE, "%s: %s", o->config.host, why_not);
	else
		send_request(o, x, &o->value[x->which]);
}

/* ---- events of the line ---- */

static void bad_answer(struct origin *o, struct exchange *x, const char *why)
{
	exchange_fail(o, x, ORIGIN_BAD_ANSWER, "%s: %s", o->config.host, why);
}

/* From here on data passes unmodified, both ways. */
static bool switch_to_raw(struct origin *o, struct exchange *x)
{
	if (canon_flow_switch(&x->talk->up) < 0 || x->talk->frames.n_head > 0) {
		exchange_fail(
			o, x, ORIGIN_BAD_REQUEST, "data was sent before the websocket response");
		return false;
	}
	x->state = EXCHANGE_RAW;
	loop_timer_clear(&o->loop, &x->timer);
	tell_exchange(o, x, ORIGIN_DONE, origin_outcome_text(ORIGIN_DONE));
	return true;
}

static bool exchange_on_head(struct origin *o, struct exchange *x, struct http_resp *resp)
{
	struct http_fault fault = {0};

	if (canon_make_resp(resp, &fault) < 0) {
		bad_answer(o, x, fault.why);
		return false;
	}
	out_drop_ours(&resp->headers);
	if (resp->status >= 200 || resp->status == 101)
		x->result.status = resp->status;
	free(TAKE(x->talk->head)); /* it will not be sent again */
	if (x->token)
		return token_on_head(o, x, resp);
	if (answer_scrub_head(o, x, resp) < 0) {
		bad_answer(o, x, capture_why(x, "cannot forward the response"));
		return false;
	}
	return resp->status == 101 ? switch_to_raw(o, x) : true;
}

static bool exchange_on_data(struct origin *o, struct exchange *x, struct slice data)
{
	int r;

	if (x->token)
		return token_on_data(o, x, data);
	if (x->state == EXCHANGE_RAW && ws_check(&x->talk->ws, data) < 0) {
		bad_answer(o, x, "a websocket frame is masked or uses an extension");
		return false;
	}
	r = x->state == EXCHANGE_RAW ? answer_scrub_raw(o, x, data) : answer_scrub(o, x, data);
	if (r < 0)
		bad_answer(o, x, capture_why(x, "cannot forward the response"));
	return r == 0;
}

static bool exchange_on_end(struct origin *o, struct exchange *x, struct http_headers *trailers)
{
	struct http_headers none = {0};

	if (x->token) { /* trailers are not searched, and not forwarded */
		line_leave(o, x);
		token_on_end(o, x);
		return false;
	}
	if (x->state == EXCHANGE_RAW) {
		x->talk->is_done = true;
		if (answer_scrub_raw_end(x) < 0) {
			bad_answer(o, x, "cannot forward the end of the response");
			return false;
		}
	} else {
		out_drop_ours(trailers ? trailers : &none);
		if (answer_scrub_end(o, x, trailers ? trailers : &none) < 0) {
			bad_answer(o, x, capture_why(x, "cannot forward the end of the response"));
			return false;
		}
	}
	line_leave(o, x);
	/* The answer first. If edge does not read it now, it is done all the same, unless a decoder
	 * has more, and may still fail. */
	if (talk_flush(o, x) && x->talk->is_done && x->state != EXCHANGE_RAW)
		exchange_tell_done(o, x);
	return false;
}

static bool is_safe(const struct http_req *req)
{
	bool has_method = slice_eq_str(req->method, "GET") || slice_eq_str(req->method, "HEAD") ||
			  slice_eq_str(req->method, "OPTIONS");

	return has_method && req->body.kind == HTTP_BODY_NONE;
}

static void exchange_on_refused(struct origin *o, struct exchange *x, const char *why)
{
	if (x->state == EXCHANGE_TALK && x->n_tries < ORIGIN_TRIES && x->talk->head &&
		sign_can_repeat(x)) {
		line_leave(o, x);
		exchange_want_line(o, x);
		return;
	}
	exchange_fail(o, x, ORIGIN_BAD_ANSWER, "%s: %s", o->config.host, why);
}

static void exchange_on_fail(struct origin *o, struct exchange *x, enum origin_outcome outcome,
	bool untouched, const char *why)
{
	if (untouched && x->state == EXCHANGE_TALK && x->n_tries < ORIGIN_TRIES && x->talk->head &&
		is_safe(&x->talk->req)) {
		line_leave(o, x);
		exchange_want_line(o, x);
		return;
	}
	exchange_fail(o, x, outcome, "%s: %s", o->config.host, why);
}

static void exchange_on_room(struct origin *o, struct exchange *x)
{
	if (x->token)
		token_push(o, x);
	else if (x->state == EXCHANGE_TALK || x->state == EXCHANGE_RAW)
		talk_pump(o, x);
}

const struct exchange_ops exchange_ops = {
	.fail = exchange_fail,
	.finish = exchange_finish,
	.flush = talk_flush,
	.tell_done = exchange_tell_done,
	.take_line = exchange_take_line,
	.on_value = exchange_on_value,
	.on_head = exchange_on_head,
	.on_data = exchange_on_data,
	.on_end = exchange_on_end,
	.on_fail = exchange_on_fail,
	.on_refused = exchange_on_refused,
	.on_lost = exchange_on_lost,
	.on_room = exchange_on_room,
};

/* ---- events ---- */

static void on_edge(struct origin *o, struct exchange *x, unsigned events)
{
	bool is_gone = events & MUX_GONE;

	switch (x->state) {
	case EXCHANGE_HEAD:
		/* reported once: an edge that closed early expects no answer */
		if (is_gone)
			exchange_finish(o, x);
		else
			read_request(o, x);
		break;
	case EXCHANGE_BODY:
		if (is_gone)
			exchange_finish(o, x);
		else
			talk_keep(o, x);
		break;
	case EXCHANGE_TOKEN:
		if (is_gone)
			exchange_finish(o, x);
		else
			token_read(o, x);
		break;
	case EXCHANGE_FLIGHT:
	case EXCHANGE_LINE:
	case EXCHANGE_VALUE:
		if (is_gone)
			exchange_finish(o, x);
		break;
	case EXCHANGE_TALK:
	case EXCHANGE_STORE:
		if (is_gone && (!x->token || !token_orphan(o, x)))
			exchange_finish(o, x);
		else if (!is_gone)
			talk_pump(o, x);
		break;
	case EXCHANGE_RAW:
		talk_pump(o, x);
		break;
	case EXCHANGE_ENDING:
		drain_edge(o, x);
		break;
	case EXCHANGE_FREE:
	case EXCHANGE_OVER:
		break;
	}
}

void exchange_on_clerk(struct origin *o, struct exchange *x, uint32_t events)
{
	if (events & EPOLLOUT && out_len(&x->to_edge) == 0)
		exchange_ignore_room(o, x);
	on_edge(o, x, events & (EPOLLHUP | EPOLLERR) ? MUX_GONE : MUX_READABLE);
}

void exchange_run_streams(struct origin *o)
{
	/* those that ask for another turn get it after other events */
	for (size_t n = o->mux.n_noted; n > 0 && o->mux.n_noted > 0; n--) {
		unsigned events;
		struct mux_stream *s = mux_next(&o->mux, &events);

		on_edge(o, &o->exchanges[s->idx], events);
	}
}

void exchange_on_timer(struct origin *o, struct exchange *x)
{
	switch (x->state) {
	case EXCHANGE_HEAD:
		exchange_fail(o, x, ORIGIN_BAD_REQUEST, "timed out waiting for the request");
		break;
	case EXCHANGE_BODY:
	case EXCHANGE_TOKEN:
		exchange_fail(o, x, ORIGIN_BAD_REQUEST, "timed out waiting for the body");
		break;
	case EXCHANGE_FLIGHT:
		exchange_fail(o, x, ORIGIN_TIMEOUT, "%s: timed out waiting for a refresh",
			o->config.host);
		break;
	case EXCHANGE_STORE:
		exchange_fail(
			o, x, ORIGIN_NO_VALUE, "%s: timed out storing the tokens", o->config.host);
		break;
	case EXCHANGE_LINE:
		exchange_fail(o, x, line_has_any(o) ? ORIGIN_BUSY : ORIGIN_TIMEOUT,
			"%s: timed out waiting for a connection", o->config.host);
		break;
	case EXCHANGE_VALUE:
		exchange_fail(
			o, x, ORIGIN_NO_VALUE, "%s: the vault did not respond", o->config.host);
		break;
	case EXCHANGE_TALK:
		exchange_fail(o, x, ORIGIN_TIMEOUT, "%s stopped sending data", o->config.host);
		break;
	default:
		exchange_finish(o, x);
		break;
	}
}
