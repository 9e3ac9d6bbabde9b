/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a token endpoint: read completely, checked, and for a refresh filled with the real
 * token. One refresh at a time: the others wait for its answer. */
#include "value.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"
#include "src/origin/answer/answer.h"

/* ---- which requests ---- */

/* A path that is not exactly the endpoint, but could be for some server, must be denied: its answer
 * would not be searched for tokens. */
int token_is_for(const struct origin *o, const struct exchange *x, bool *ret)
{
	const struct service_request asked = {
		.host = &o->host, .port = o->config.port, .path = x->talk->req.path};

	*ret = service_is_endpoint(&o->service, &asked);
	return *ret || !service_may_be_endpoint(&o->service, &asked) ? 0 : -EPERM;
}

static void foreign_token(struct origin *o, struct exchange *x, const char *where)
{
	o->ops->fail(o, x, ORIGIN_DENIED_FOREIGN, "%s: %s: %s", o->config.host,
		origin_outcome_text(ORIGIN_DENIED_FOREIGN), where);
}

static void bad_request(struct origin *o, struct exchange *x, const char *why)
{
	o->ops->fail(o, x, ORIGIN_BAD_REQUEST, "%s: %s", o->config.host, why);
}

static bool has_content(const struct http_req *req)
{
	return req->body.kind == HTTP_BODY_CHUNKED ||
	       (req->body.kind == HTTP_BODY_LENGTH && req->body.length > 0);
}

/* Returns NULL, or why it cannot be parsed. */
static const char *check_head(struct http_req *req, struct token *t)
{
	size_t at;
	int r;

	if (req->websocket)
		return "a token endpoint does not accept websockets";
	if (!has_content(req))
		return NULL;
	if (canon_find_header(&req->headers, "content-encoding", &at) != -ENOENT)
		return "the body of a token request must not be encoded";
	r = canon_find_header(&req->headers, "content-type", &at);
	if (r < 0 || oauth_parse_type(req->headers.list[at].value, &t->req.form) < 0)
		return "invalid token request: expected JSON or a form";
	if (req->body.kind == HTTP_BODY_LENGTH && req->body.length > OAUTH_MAX_REQUEST)
		return "the token request is too large";
	return NULL;
}

void token_begin(struct origin *o, struct exchange *x)
{
	struct http_req *req = &x->talk->req;
	const char *why;

	x->token = xcalloc(1, sizeof(*x->token));
	x->token->store[0].fd = x->token->store[1].fd = -1;
	why = check_head(req, x->token);
	if (why) {
		bad_request(o, x, why);
		return;
	}
	if (oauth_judge_query(&o->service, req->query) < 0) {
		foreign_token(o, x, "query");
		return;
	}
	canon_remove_header(&req->headers, "accept-encoding");
	if (canon_set_header(&req->headers, slice_from_str("accept-encoding"),
		    slice_from_str("identity")) < 0) {
		bad_request(o, x, "the request has too many headers");
		return;
	}
	x->state = EXCHANGE_TOKEN;
	exchange_set_timer(o, x, ORIGIN_HEAD_MS);
	if (req->expect_continue) {
		struct http_resp go_on = {.status = 100};

		req->expect_continue = false;
		if (answer_put_head(x, &go_on) < 0 || !o->ops->flush(o, x))
			return;
	}
	token_read(o, x);
}

/* ---- its content ---- */

static int keep_data(struct exchange *x, struct slice data)
{
	struct token *t = x->token;

	if (canon_flow_data(&x->talk->up, data.n) < 0 || data.n > OAUTH_MAX_REQUEST - t->n_body)
		return -EBADMSG;
	if (!t->body)
		t->body = xmalloc(OAUTH_MAX_REQUEST);
	memcpy(t->body + t->n_body, data.p, data.n);
	t->n_body += data.n;
	return 0;
}

/* Returns 1 at its end; trailers are not forwarded. */
static int keep_end(struct origin *o, struct exchange *x, struct slice payload)
{
	struct http_headers trailers = {0};

	arena_reset(&o->arena);
	if (canon_get_end(payload, &o->arena, &trailers) < 0 ||
		canon_flow_end(&x->talk->up, &trailers) < 0)
		return -EBADMSG;
	return slot_judge_trailers(o, &trailers) == ORIGIN_DONE ? 1 : -EPERM;
}

static int take_frame(struct origin *o, struct exchange *x, const struct canon_frame *frame)
{
	if (frame->stream != OUT_STREAM)
		return -EBADMSG;
	if (frame->kind == CANON_DATA)
		return keep_data(x, frame->payload);
	if (frame->kind == CANON_END)
		return keep_end(o, x, frame->payload);
	return frame->kind == CANON_RESET ? -ECONNRESET : -EBADMSG;
}

/* ---- whose turn ---- */

bool token_needs_value(const struct exchange *x)
{
	return x->token && x->token->req.grant == OAUTH_REFRESH;
}

static bool is_under_way(const struct exchange *x)
{
	return x->token && (x->state == EXCHANGE_LINE || x->state == EXCHANGE_VALUE ||
				   x->state == EXCHANGE_TALK || x->state == EXCHANGE_STORE);
}

static void go_token(struct origin *o, struct exchange *x)
{
	unsigned n = 0;

	for (size_t i = 0; i < ORIGIN_SLOTS; i++)
		n += is_under_way(&o->exchanges[i]);
	if (n >= ORIGIN_MAX_TOKENS) {
		o->ops->fail(o, x, ORIGIN_BUSY, "%s: too many concurrent logins", o->config.host);
		return;
	}
	if (token_needs_value(x)) {
		o->flight = x;
		x->slot = NULL; /* the refresh token alone authenticates it */
		x->which = ORIGIN_REFRESH;
	}
	exchange_want_line(o, x);
}

static void begin_refresh(struct origin *o, struct exchange *x)
{
	if (token_remembers(o, x))
		return;
	if (!(o->config.has & ORIGIN_HAS_REFRESH)) {
		o->ops->fail(o, x, ORIGIN_NO_VALUE,
			"%s: the sandbox has no refresh token: log in again", o->config.host);
	} else if (o->flight) {
		x->state = EXCHANGE_FLIGHT;
		exchange_set_timer(o, x, ORIGIN_FLIGHT_MS);
	} else {
		go_token(o, x);
	}
}

static void on_whole(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;
	int r = oauth_judge(&o->service, t->req.form, slice_of(t->body, t->n_body), &t->req);

	if (r == -EPERM)
		foreign_token(o, x, "token");
	else if (r == -ENOTSUP)
		bad_request(o, x, "unknown kind of token request");
	else if (r < 0)
		bad_request(o, x, "cannot parse the token request");
	else if (t->req.grant == OAUTH_REFRESH)
		begin_refresh(o, x);
	else
		go_token(o, x);
}

static void read_some(struct origin *o, struct exchange *x, struct slice in)
{
	struct canon_frame frame;
	int r;

	while ((r = canon_reader_feed(&x->talk->frames, &in, &frame)) == 1) {
		r = take_frame(o, x, &frame);
		if (r != 0)
			break;
	}
	if (r == 1 && in.n == 0)
		on_whole(o, x);
	else if (r == -ECONNRESET)
		o->ops->finish(o, x);
	else if (r == -EPERM)
		foreign_token(o, x, "trailer");
	else if (r != 0)
		bad_request(o, x, "the token request is invalid or too large");
}

void token_read(struct origin *o, struct exchange *x)
{
	uint32_t gen = x->gen;
	uint8_t buf[4096];

	while (x->gen == gen && x->state == EXCHANGE_TOKEN) {
		ssize_t n = exchange_recv(x, buf, sizeof(buf));

		if (n < 0)
			return;
		if (n == 0) {
			o->ops->finish(o, x);
			return;
		}
		read_some(o, x, slice_of(buf, (size_t)n));
	}
}

/* ---- sending ---- */

static int fill_refresh(struct token *t, const struct value *v)
{
	struct wr wr;
	int r;

	secret_done(&t->filled);
	r = secret_init(&t->filled, t->n_body + 3 * v->frame.value.n, NULL);
	if (r < 0)
		return r;
	wr = wr_init(t->filled.p, t->filled.size);
	r = oauth_fill(&t->req, v->frame.value, &wr);
	t->filled.n = r < 0 ? 0 : wr.n;
	return r;
}

static struct slice content_token(const struct token *t)
{
	return t->req.grant == OAUTH_REFRESH ? secret_slice(&t->filled)
					     : slice_of(t->body, t->n_body);
}

int token_fill(struct exchange *x, const struct value *v)
{
	struct token *t = x->token;
	struct http_body *body = &x->talk->req.body;
	int r = 0;

	if (t->req.grant == OAUTH_REFRESH)
		r = v ? fill_refresh(t, v) : -EINVAL;
	if (body->kind != HTTP_BODY_NONE)
		*body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = content_token(t).n};
	t->n_pushed = 0;
	t->is_pushed = false;
	return r;
}

void token_push(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;
	struct slice all = content_token(t);
	const struct line *l = x->line;
	int r = 0;

	if (x->state != EXCHANGE_TALK || !l || t->is_pushed || x->talk->is_deaf)
		return;
	while (r == 0 && t->n_pushed < all.n) {
		size_t n = MIN(all.n - t->n_pushed, OUT_READ);

		if (l->ops->room(l, x) < n)
			return;
		r = l->ops->body(o, x, slice_of(all.p + t->n_pushed, n));
		t->n_pushed += n;
	}
	t->is_pushed = true;
	/* a request without content has ended with its head */
	if (r == 0 && x->talk->req.body.kind != HTTP_BODY_NONE)
		r = l->ops->end(o, x, NULL);
	secret_done(&t->filled);
	if (r < 0)
		bad_request(o, x, "cannot send the token request");
}

/* ---- the end ---- */

bool token_orphan(struct origin *o, struct exchange *x)
{
	if (x->n_tries == 0)
		return false;
	exchange_close_edge(o, x);
	return true;
}

/* Exchanges that waited for this refresh get its answer. If the server has not seen it, the next
 * one sends its own; otherwise they fail too. */
void token_land(struct origin *o, struct exchange *x)
{
	bool was_sent = x->n_tries > 0;

	o->flight = NULL;
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		struct exchange *w = &o->exchanges[i];

		if (w->state != EXCHANGE_FLIGHT)
			continue;
		if (x->token->has_answer)
			token_share(o, w, x->token);
		else if (was_sent)
			o->ops->fail(o, w, x->result.outcome, "%s", x->result.text);
		else if (!o->flight)
			go_token(o, w);
	}
}

void token_drop(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;

	if (o->flight == x)
		token_land(o, x);
	x->token = NULL;
	token_store_drop(t);
	secret_done(&t->filled);
	secret_done(&t->answer);
	secret_done(&t->clean);
	if (t->body)
		explicit_bzero(t->body, OAUTH_MAX_REQUEST); /* codes are good for one login */
	free(t->body);
	free(t->head);
	free(t);
}
