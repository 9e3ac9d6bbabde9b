/* SPDX-License-Identifier: Apache-2.0 */
#include "http1_internal.h"

#include <errno.h>
#include <llhttp.h>

#define DISAGREE "the two HTTP parsers disagree about the message"

/* llhttp, and what it has found since the last bytes it was fed. */
struct http1_twin {
	llhttp_t parser;
	const struct http1 *h;
	const struct http_headers *expected;
	size_t at; /* headers compared */
	struct slice url, name, value, data;
	bool complete, differs;
};

/* The bytes of a span come in pieces at most because there is a gap, and then something is odd. */
static int add_span(struct http1_twin *t, struct slice *s, const char *at, size_t n)
{
	if (s->n > 0 && n > 0 && s->p + s->n != (const uint8_t *)at)
		t->differs = true;
	if (s->n == 0)
		*s = slice_of(at, n);
	else
		s->n += n;
	return t->differs ? -1 : 0;
}

static int on_url(llhttp_t *p, const char *at, size_t n)
{
	struct http1_twin *t = p->data;

	return add_span(t, &t->url, at, n);
}

static int on_name(llhttp_t *p, const char *at, size_t n)
{
	struct http1_twin *t = p->data;

	return add_span(t, &t->name, at, n);
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
	struct http1_twin *t = p->data;

	return add_span(t, &t->value, at, n);
}

static int on_data(llhttp_t *p, const char *at, size_t n)
{
	struct http1_twin *t = p->data;

	return add_span(t, &t->data, at, n);
}

static int on_value_complete(llhttp_t *p)
{
	struct http1_twin *t = p->data;
	struct http_header hd;

	if (!t->expected || t->at == t->expected->n) {
		t->differs = true;
		return -1;
	}
	hd = t->expected->list[t->at++];
	if (!slice_eq(t->name, hd.name) || !slice_eq(canon_text_trim(t->value), hd.value))
		t->differs = true;
	t->name = t->value = (struct slice){0};
	return t->differs ? -1 : 0;
}

/* llhttp knows nothing of the request that a response answers. */
static int on_headers_complete(llhttp_t *p)
{
	const struct http1_twin *t = p->data;
	const struct http_body *body = &t->h->resp.body;

	if (t->h->side == HTTP1_REQUESTS)
		return 0;
	if (body->kind == HTTP_BODY_TUNNEL)
		return 2;
	return body->absent || body->kind == HTTP_BODY_NONE ? 1 : 0;
}

static int on_complete(llhttp_t *p)
{
	struct http1_twin *t = p->data;

	/* A second message in what we took for one. */
	if (t->complete)
		t->differs = true;
	t->complete = true;
	return t->differs ? -1 : 0;
}

static const llhttp_settings_t callbacks = {
	.on_url = on_url,
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_header_value_complete = on_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_data,
	.on_message_complete = on_complete,
};

static int feed_twin(struct http1 *h, struct slice bytes)
{
	struct http1_twin *t = h->twin;
	llhttp_errno_t e;

	t->data = (struct slice){0};
	e = llhttp_execute(&t->parser, (const char *)bytes.p, bytes.n);
	if (t->differs)
		return http1_fail(h, 400, DISAGREE);
	if (e == HPE_INVALID_METHOD)
		return http1_fail(h, 501, "unknown method");
	/* The pause reports that the following bytes are not HTTP; our scanner stops there too. */
	if (e != HPE_OK && !(e == HPE_PAUSED_UPGRADE && t->complete))
		return http1_fail(h, 400, "invalid HTTP");
	return 0;
}

static bool is_same_start(const struct http1 *h)
{
	struct http1_twin *t = h->twin;
	struct rd start = rd_init(slice_of(h->lines, h->n_start));
	struct slice target;
	uint8_t minor = h->side == HTTP1_REQUESTS ? !h->req.http10 : !h->resp.http10;

	if (t->parser.http_major != 1 || t->parser.http_minor != minor)
		return false;
	if (h->side == HTTP1_RESPONSES)
		return t->parser.status_code == h->resp.status;
	/* "METHOD target HTTP/1.1" */
	(void)rd_bytes(&start, h->req.method.n + 1);
	target = rd_bytes(&start, h->n_start - h->req.method.n - 10);
	return !start.bad && slice_eq(t->url, target) &&
	       slice_eq_str(h->req.method, llhttp_method_name((llhttp_method_t)t->parser.method));
}

/* An answer without content may have framing headers without meaning. */
static bool is_same_framing(const struct http1 *h)
{
	const struct http_body *body = h->side == HTTP1_REQUESTS ? &h->req.body : &h->resp.body;
	const llhttp_t *p = &h->twin->parser;
	bool over = body->absent || body->kind == HTTP_BODY_NONE ||
		    body->kind == HTTP_BODY_TUNNEL ||
		    (body->kind == HTTP_BODY_LENGTH && body->length == 0);

	if (h->twin->complete != over)
		return false;
	if (over)
		return true;
	if (((p->flags & F_CHUNKED) != 0) != (body->kind == HTTP_BODY_CHUNKED))
		return false;
	return body->kind != HTTP_BODY_LENGTH || p->content_length == body->length;
}

int http1_twin_head(struct http1 *h)
{
	bool is_req = h->side == HTTP1_REQUESTS;
	struct http1_twin *t = arena_calloc(h->arena, 1, sizeof(*t));

	if (!t)
		return http1_fail(h, 431, "the head is too large");
	h->twin = t;
	llhttp_init(&t->parser, is_req ? HTTP_REQUEST : HTTP_RESPONSE, &callbacks);
	t->parser.data = t;
	t->h = h;
	t->expected = is_req ? &h->req.headers : &h->resp.headers;
	if (feed_twin(h, slice_of(h->lines, h->n_lines)) < 0)
		return -EBADMSG;
	if (t->at != t->expected->n || t->data.n > 0 || !is_same_start(h) || !is_same_framing(h))
		return http1_fail(h, 400, DISAGREE);
	t->expected = NULL;
	return 0;
}

int http1_twin_framing(struct http1 *h, struct slice bytes)
{
	if (feed_twin(h, bytes) < 0)
		return -EBADMSG;
	return h->twin->data.n > 0 || h->twin->complete ? http1_fail(h, 400, DISAGREE) : 0;
}

int http1_twin_data(struct http1 *h, struct slice bytes)
{
	if (feed_twin(h, bytes) < 0)
		return -EBADMSG;
	if (h->twin->data.p != bytes.p || h->twin->data.n != bytes.n)
		return http1_fail(h, 400, DISAGREE);
	h->n_data += bytes.n;
	return 0;
}

int http1_twin_trailers(struct http1 *h)
{
	struct http1_twin *t = h->twin;

	t->expected = &h->trailers;
	t->at = 0;
	if (feed_twin(h, slice_of(h->lines, h->n_lines)) < 0)
		return -EBADMSG;
	return t->at != h->trailers.n || t->data.n > 0 ? http1_fail(h, 400, DISAGREE) : 0;
}

int http1_twin_end(struct http1 *h, bool at_eof)
{
	struct http1_twin *t = h->twin;

	if (at_eof && !t->complete && llhttp_finish(&t->parser) != HPE_OK)
		return http1_fail(h, 400, "the connection was closed inside a message");
	return t->complete ? 0 : http1_fail(h, 400, DISAGREE);
}
