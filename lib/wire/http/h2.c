/* SPDX-License-Identifier: Apache-2.0 */
#include "h2.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static const char *const pseudo_names[] = {
	[H2_METHOD] = ":method",
	[H2_SCHEME] = ":scheme",
	[H2_PATH] = ":path",
	[H2_AUTHORITY] = ":authority",
};
static_assert(ARRAY_LEN(pseudo_names) == H2_N_PSEUDO, "one name per kind");

/* Fields of one connection; HTTP/2 has other means (RFC 9113, 8.2.2). */
static const char *const forbidden[] = {
	"connection",
	"http2-settings",
	"keep-alive",
	"proxy-connection",
	"transfer-encoding",
	"upgrade",
};

static void fail_h2(struct h2_block *b, uint16_t status, const char *why)
{
	if (!b->fault.status)
		(void)canon_refuse(&b->fault, status, why);
}

static void begin_h2(struct h2_block *b, struct arena *arena, size_t max)
{
	*b = (struct h2_block){.arena = arena};
	canon_headers_init(&b->headers, arena, max);
}

void h2_begin_req(struct h2_block *b, struct arena *arena)
{
	begin_h2(b, arena, H2_MAX_FIELDS + HTTP_SPARE_HEADERS);
}

void h2_begin_trailers(struct h2_block *b, struct arena *arena)
{
	begin_h2(b, arena, HTTP_MAX_TRAILERS);
	b->is_trailers = true;
}

static void add_pseudo(struct h2_block *b, struct slice name, struct slice value)
{
	for (size_t i = 0; i < H2_N_PSEUDO; i++) {
		if (!slice_eq_str(name, pseudo_names[i]))
			continue;
		if (b->has[i]) {
			fail_h2(b, 400, "a duplicate pseudo-header");
			return;
		}
		b->has[i] = true;
		b->pseudo[i] = arena_dup(b->arena, value);
		return;
	}
	fail_h2(b, 400, "an unknown pseudo-header");
}

static bool is_forbidden(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++)
		if (slice_eq_str(name, forbidden[i]))
			return true;
	return false;
}

static void add_header(struct h2_block *b, struct slice name, struct slice value)
{
	struct http_headers *list = &b->headers;
	size_t max = b->is_trailers ? HTTP_MAX_TRAILERS : H2_MAX_FIELDS;

	if (!canon_text_is_lower_token(name))
		fail_h2(b, 400, "a header name with an invalid character");
	else if (!canon_text_is_value(value))
		fail_h2(b, 400, "a control character in a header value");
	else if (!canon_text_is_trimmed_value(value))
		fail_h2(b, 400, "a header value with leading or trailing spaces");
	else if (is_forbidden(name))
		fail_h2(b, 400, "a header that is not allowed in HTTP/2");
	else if (slice_eq_str(name, "te") && !canon_text_eq_fold(value, "trailers"))
		fail_h2(b, 400, "TE is not trailers");
	else if (list->n == max)
		fail_h2(b, 431, "too many header fields");
	if (b->fault.status)
		return;
	if (slice_eq_str(name, "cookie")) {
		b->n_crumbs++;
		b->n_crumb_bytes += value.n;
	}
	list->list[list->n++] = (struct http_header){
		.name = arena_dup(b->arena, name), .value = arena_dup(b->arena, value)};
}

void h2_add(struct h2_block *b, struct slice name, struct slice value)
{
	size_t max = b->is_trailers ? HTTP_MAX_TRAILER_BYTES : HTTP_MAX_HEAD;
	bool is_pseudo = name.n > 0 && name.p[0] == ':';

	b->n_cost += name.n + value.n + H2_FIELD_COST;
	if (b->n_cost > max || b->headers.max == 0)
		fail_h2(b, 431, "the head or the trailers are too large");
	if (is_pseudo && (b->is_trailers || b->headers.n > 0))
		fail_h2(b, 400, "a pseudo-header after regular headers");
	if (b->fault.status)
		return;
	if (is_pseudo)
		add_pseudo(b, name, value);
	else
		add_header(b, name, value);
	if (arena_is_full(b->arena))
		fail_h2(b, 431, "the head or the trailers are too large");
}

/* Cookie crumbs are joined into one field (RFC 9113, 8.2.3), at the position of the first. */
static void join_cookies(struct h2_block *b)
{
	struct http_headers *list = &b->headers;
	size_t size = b->n_crumb_bytes + 2 * b->n_crumbs, to = 0;
	struct http_header *first = NULL;
	struct wr wr;

	if (b->n_crumbs < 2)
		return;
	wr = wr_init(arena_alloc(b->arena, size), size);
	for (size_t i = 0; i < list->n && !arena_is_full(b->arena); i++) {
		if (!slice_eq_str(list->list[i].name, "cookie")) {
			list->list[to++] = list->list[i];
			continue;
		}
		wr_bytes(&wr, slice_from_str(first ? "; " : ""));
		wr_bytes(&wr, list->list[i].value);
		if (!first) {
			first = &list->list[to++];
			*first = list->list[i];
		}
	}
	list->n = to;
	if (first)
		first->value = slice_of(wr.p, wr.n);
	/* An empty crumb at an end would leave a blank there. */
	if (first && !canon_text_is_trimmed_value(first->value))
		fail_h2(b, 400, "an empty piece of a cookie");
}

static void take_target(struct h2_block *b, struct http_req *req)
{
	struct slice target = b->pseudo[H2_PATH];
	const uint8_t *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
	size_t n = mark ? (size_t)(mark - target.p) : target.n;

	req->form = HTTP_FORM_ABSOLUTE;
	if (slice_eq_str(target, "*")) {
		req->form = HTTP_FORM_ASTERISK;
		req->path = target;
		if (!slice_eq_str(req->method, "OPTIONS"))
			fail_h2(b, 400, "the target * is for OPTIONS only");
		return;
	}
	req->path = canon_text_cut(target, 0, n);
	req->has_query = mark != NULL;
	if (mark)
		req->query = canon_text_cut(target, n + 1, target.n);
	if (target.n == 0 || target.p[0] != '/')
		fail_h2(b, 400, ":path is not a path");
	else if (canon_check_path(req->path) < 0 || canon_check_query(req->query) < 0)
		fail_h2(b, 400, "a path or query with an invalid character, escape or ..");
}

static void take_pseudo(struct h2_block *b, struct http_req *req)
{
	req->method = b->pseudo[H2_METHOD];
	req->scheme = HTTP_SCHEME_HTTPS;
	req->authority = b->pseudo[H2_AUTHORITY];
	if (!b->has[H2_METHOD] || !canon_text_is_token(req->method) ||
		req->method.n > HTTP_MAX_METHOD)
		fail_h2(b, 400, "a missing or invalid :method");
	else if (slice_eq_str(req->method, "CONNECT"))
		fail_h2(b, 400, "CONNECT on a connection that has a target");
	else if (!b->has[H2_SCHEME] || !slice_eq_str(b->pseudo[H2_SCHEME], "https"))
		fail_h2(b, 400, ":scheme is not https");
	else if (!b->has[H2_PATH])
		fail_h2(b, 400, "no :path");
	else if (b->has[H2_AUTHORITY] &&
		 (req->authority.n == 0 || memchr(req->authority.p, '@', req->authority.n)))
		fail_h2(b, 400, ":authority has no host, or contains a user");
	else
		take_target(b, req);
}

/* HTTP/2's :authority is HTTP/1.1's Host. If both are present, canon_make_req compares them. */
static void add_host(struct h2_block *b, const struct http_req *req)
{
	struct http_headers *list = &b->headers;
	size_t at;
	int r = canon_find_header(list, "host", &at);

	if (r == -ENOTUNIQ)
		fail_h2(b, 400, "more than one Host header");
	else if (r == -ENOENT && req->authority.n == 0)
		fail_h2(b, 400, "neither :authority nor Host");
	else if (r == -ENOENT)
		list->list[list->n++] = (struct http_header){
			.name = slice_from_str("host"), .value = req->authority};
}

static void take_body(struct h2_block *b, bool ended, struct http_req *req)
{
	struct http_body *body = &req->body;
	size_t at;
	int r = canon_find_header(&b->headers, "content-length", &at);

	if (r == -ENOTUNIQ) {
		fail_h2(b, 400, "more than one Content-Length");
	} else if (r == -ENOENT) {
		body->kind = ended ? HTTP_BODY_NONE : HTTP_BODY_CHUNKED;
	} else {
		body->kind = HTTP_BODY_LENGTH;
		if (!canon_text_to_u64(b->headers.list[at].value, &body->length) ||
			body->length > INT64_MAX)
			fail_h2(b, 400, "Content-Length is not a number");
		else if (ended && body->length > 0)
			fail_h2(b, 400, "the body is shorter than Content-Length");
	}
	if (slice_eq_str(req->method, "TRACE") && !ended)
		fail_h2(b, 400, "TRACE with a body");
}

static void take_expect(struct h2_block *b, struct http_req *req)
{
	size_t at;
	int r = canon_find_header(&b->headers, "expect", &at);

	if (r == -ENOENT)
		return;
	if (r < 0 || !canon_text_eq_fold(b->headers.list[at].value, "100-continue"))
		fail_h2(b, 417, "Expect is not 100-continue");
	req->expect_continue = req->body.kind == HTTP_BODY_CHUNKED || req->body.length > 0;
}

static int finish_h2(const struct h2_block *b, struct http_fault *fault)
{
	if (!b->fault.status)
		return 0;
	*fault = b->fault;
	return -EBADMSG;
}

int h2_take_req(struct h2_block *b, bool ended, struct http_req *ret, struct http_fault *fault)
{
	struct http_req req = {0}; /* no keep_alive: a stream has one request */
	size_t at;

	if (!b->fault.status)
		take_pseudo(b, &req);
	if (!b->fault.status) {
		join_cookies(b);
		if (b->headers.n > HTTP_MAX_HEADERS)
			fail_h2(b, 431, "too many header fields");
		take_body(b, ended, &req);
		take_expect(b, &req);
		req.te_trailers = canon_find_header(&b->headers, "te", &at) != -ENOENT;
		add_host(b, &req);
	}
	if (arena_is_full(b->arena))
		fail_h2(b, 431, "the head or the trailers are too large");
	if (finish_h2(b, fault) < 0)
		return -EBADMSG;
	req.headers = b->headers;
	*ret = req;
	return 0;
}

int h2_take_trailers(struct h2_block *b, struct http_headers *ret, struct http_fault *fault)
{
	for (size_t i = 0; i < b->headers.n; i++)
		if (canon_is_forbidden_trailer(b->headers.list[i].name))
			fail_h2(b, 400, "a header that is not allowed as a trailer");
	if (finish_h2(b, fault) < 0)
		return -EBADMSG;
	*ret = b->headers;
	return 0;
}

static void put_h2(struct h2_fields *f, struct slice name, struct slice value)
{
	f->list[f->n++] = (struct http_header){.name = name, .value = value};
}

static void put_status(const struct http_resp *resp, struct h2_fields *ret)
{
	ret->n = 0;
	(void)snprintf(ret->status, sizeof(ret->status), "%u", resp->status % 1000u);
	put_h2(ret, slice_from_str(":status"), slice_from_str(ret->status));
}

int h2_put_resp(const struct http_resp *resp, struct h2_fields *ret)
{
	ret->n = 0;
	if (canon_check_resp(resp) < 0 || resp->body.kind == HTTP_BODY_TUNNEL)
		return -EINVAL;
	put_status(resp, ret);
	for (size_t i = 0; i < resp->headers.n; i++)
		put_h2(ret, resp->headers.list[i].name, resp->headers.list[i].value);
	if (resp->body.kind != HTTP_BODY_LENGTH)
		return 0;
	(void)snprintf(
		ret->length, sizeof(ret->length), "%llu", (unsigned long long)resp->body.length);
	put_h2(ret, slice_from_str("content-length"), slice_from_str(ret->length));
	return 0;
}

int h2_put_refusal(const struct http_resp *resp, struct h2_fields *ret)
{
	if (resp->headers.n > HTTP_MAX_HEADERS)
		return -EINVAL;
	put_status(resp, ret);
	for (size_t i = 0; i < resp->headers.n; i++)
		if (!is_forbidden(resp->headers.list[i].name))
			put_h2(ret, resp->headers.list[i].name, resp->headers.list[i].value);
	return 0;
}

int h2_put_trailers(const struct http_headers *trailers, struct h2_fields *ret)
{
	ret->n = 0;
	if (canon_check_trailers(trailers) < 0)
		return -EINVAL;
	for (size_t i = 0; i < trailers->n; i++)
		put_h2(ret, trailers->list[i].name, trailers->list[i].value);
	return 0;
}
