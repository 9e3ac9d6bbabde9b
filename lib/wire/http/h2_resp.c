/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_resp.h"

#include <errno.h>
#include <stdio.h>

static void fail_resp(struct h2_resp *r, const char *why)
{
	if (!r->block.fault.status)
		(void)canon_refuse(&r->block.fault, 502, why);
}

void h2_resp_begin(struct h2_resp *r, struct arena *arena)
{
	h2_begin_req(&r->block, arena);
	r->status = 0;
}

static void add_status(struct h2_resp *r, struct slice value)
{
	uint64_t status;

	if (r->status || r->block.headers.n > 0)
		fail_resp(r, ":status is duplicate, or after regular headers");
	else if (value.n != 3 || !canon_text_to_u64(value, &status) || status < 100 || status > 599)
		fail_resp(r, ":status is invalid");
	else if (status == 101)
		fail_resp(r, "101 in HTTP/2");
	else
		r->status = (uint16_t)status;
}

void h2_resp_add(struct h2_resp *r, struct slice name, struct slice value)
{
	if (slice_eq_str(name, ":status")) {
		r->block.n_cost += name.n + value.n + H2_FIELD_COST;
		add_status(r, value);
		return;
	}
	if (name.n > 0 && name.p[0] == ':')
		fail_resp(r, "a pseudo-header that is not allowed in a response");
	h2_add(&r->block, name, value);
}

/* As in HTTP/1.1: the length of an interim response, 204, 304 or after HEAD has no meaning. */
static void take_body(struct h2_resp *r, bool was_head, bool ended, struct http_resp *resp)
{
	struct http_body *body = &resp->body;
	size_t at;
	int found = canon_find_header(&r->block.headers, "content-length", &at);

	if (found == -ENOTUNIQ)
		fail_resp(r, "more than one Content-Length");
	if (found == 0) {
		body->kind = HTTP_BODY_LENGTH;
		if (!canon_text_to_u64(r->block.headers.list[at].value, &body->length) ||
			body->length > INT64_MAX)
			fail_resp(r, "Content-Length is not a number");
	}
	if (resp->status < 200 || resp->status == 204) {
		if (body->length > 0)
			fail_resp(r, "content where the status allows none");
		*body = (struct http_body){.kind = HTTP_BODY_NONE};
	} else if (was_head || resp->status == 304) {
		body->absent = true;
	} else if (found == -ENOENT) {
		/* What has ended has the length 0, which HTTP/1.1 has to say. */
		body->kind = ended ? HTTP_BODY_LENGTH : HTTP_BODY_CHUNKED;
	} else if (ended && body->length > 0) {
		fail_resp(r, "the content is shorter than Content-Length");
	}
	if (resp->status < 200 && ended)
		fail_resp(r, "an interim response that ends the stream");
}

int h2_resp_take(struct h2_resp *r, bool was_head, bool ended, struct http_resp *ret,
	struct http_fault *fault)
{
	struct http_resp resp = {.status = r->status, .keep_alive = true};

	if (!r->status)
		fail_resp(r, "no :status");
	if (r->block.headers.n > HTTP_MAX_HEADERS)
		fail_resp(r, "too many header fields");
	take_body(r, was_head, ended, &resp);
	if (arena_is_full(r->block.arena))
		fail_resp(r, "the head is too large");
	if (r->block.fault.status) {
		*fault = (struct http_fault){.status = 502, .why = r->block.fault.why};
		return -EBADMSG;
	}
	resp.headers = r->block.headers;
	*ret = resp;
	return 0;
}

/* ---- requests ---- */

static void put_resp(struct h2_req_fields *f, const char *name, struct slice value)
{
	f->list[f->n++] = (struct http_header){.name = slice_from_str(name), .value = value};
}

static struct slice write_path(const struct http_req *req, struct arena *arena)
{
	size_t n = req->path.n + 1 + req->query.n;
	uint8_t *p = arena_alloc(arena, n);
	struct wr wr = wr_init(p, p ? n : 0);

	wr_bytes(&wr, req->path);
	if (req->has_query)
		wr_u8(&wr, '?');
	wr_bytes(&wr, req->query);
	return slice_of(wr.p, wr.bad ? 0 : wr.n);
}

static struct slice write_authority(const struct http_req *req, struct arena *arena)
{
	size_t n = req->host.n + 16;
	uint8_t *p = arena_alloc(arena, n);
	struct wr wr = wr_init(p, p ? n : 0);

	canon_write_authority(&wr, req, false);
	return slice_of(wr.p, wr.bad ? 0 : wr.n);
}

int h2_resp_put_req(const struct http_req *req, struct arena *arena, struct h2_req_fields *ret)
{
	ret->n = 0;
	if (canon_check_req(req) < 0 || req->websocket || req->form == HTTP_FORM_AUTHORITY)
		return -EINVAL;
	put_resp(ret, ":method", req->method);
	put_resp(ret, ":scheme",
		slice_from_str(req->scheme == HTTP_SCHEME_HTTPS ? "https" : "http"));
	put_resp(ret, ":authority", write_authority(req, arena));
	put_resp(ret, ":path", write_path(req, arena));
	for (size_t i = 0; i < req->headers.n; i++)
		ret->list[ret->n++] = req->headers.list[i];
	if (req->te_trailers)
		put_resp(ret, "te", slice_from_str("trailers"));
	if (req->body.kind == HTTP_BODY_LENGTH) {
		(void)snprintf(ret->length, sizeof(ret->length), "%llu",
			(unsigned long long)req->body.length);
		put_resp(ret, "content-length", slice_from_str(ret->length));
	}
	if (req->expect_continue)
		put_resp(ret, "expect", slice_from_str("100-continue"));
	return arena_is_full(arena) ? -ENOBUFS : 0;
}
