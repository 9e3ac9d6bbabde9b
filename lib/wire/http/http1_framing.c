/* SPDX-License-Identifier: Apache-2.0 */
#include "http1_internal.h"

#include <errno.h>

/* What the headers say about the message and its connection. */
struct said {
	size_t n_host, n_length, n_encoding, n_expect, n_upgrade, n_key, n_version;
	struct slice length, encoding, expect, upgrade, version;
	bool close, keep_alive, wants_upgrade, te_trailers;
};

static int take_connection(struct http1 *h, struct slice list, struct said *said)
{
	struct slice item;

	while (canon_text_next(&list, &item)) {
		if (item.n > 0 && !canon_text_is_token(item))
			return http1_fail(h, 400, "Connection is not a list of names");
		said->close = said->close || canon_text_eq_fold(item, "close");
		said->keep_alive = said->keep_alive || canon_text_eq_fold(item, "keep-alive");
		said->wants_upgrade = said->wants_upgrade || canon_text_eq_fold(item, "upgrade");
	}
	return 0;
}

static void take_counted(struct http_header hd, const char *name, size_t *n, struct slice *value)
{
	if (!slice_eq_str(hd.name, name))
		return;
	(*n)++;
	*value = hd.value;
}

static int gather_framing(struct http1 *h, const struct http_headers *headers, struct said *said)
{
	struct slice unused;

	*said = (struct said){0};
	for (size_t i = 0; i < headers->n; i++) {
		struct http_header hd = headers->list[i];

		take_counted(hd, "host", &said->n_host, &unused);
		take_counted(hd, "content-length", &said->n_length, &said->length);
		take_counted(hd, "transfer-encoding", &said->n_encoding, &said->encoding);
		take_counted(hd, "expect", &said->n_expect, &said->expect);
		take_counted(hd, "upgrade", &said->n_upgrade, &said->upgrade);
		take_counted(hd, "sec-websocket-key", &said->n_key, &unused);
		take_counted(hd, "sec-websocket-version", &said->n_version, &said->version);
		if (slice_eq_str(hd.name, "te") && canon_text_list_has(hd.value, "trailers"))
			said->te_trailers = true;
		if (slice_eq_str(hd.name, "connection") && take_connection(h, hd.value, said) < 0)
			return -EBADMSG;
	}
	return 0;
}

/* The one place that decides how long a message is. NONE without framing headers. */
static int take_body(struct http1 *h, const struct said *said, bool http10, struct http_body *ret)
{
	*ret = (struct http_body){.kind = HTTP_BODY_NONE};
	if (said->n_length > 1)
		return http1_fail(h, 400, "more than one Content-Length");
	if (said->n_encoding > 1)
		return http1_fail(h, 400, "more than one Transfer-Encoding");
	if (said->n_length && said->n_encoding)
		return http1_fail(h, 400, "both Content-Length and Transfer-Encoding");
	if (said->n_encoding) {
		if (http10)
			return http1_fail(h, 400, "Transfer-Encoding in HTTP/1.0");
		if (!canon_text_eq_fold(said->encoding, "chunked"))
			return http1_fail(h, 400, "Transfer-Encoding is not chunked");
		ret->kind = HTTP_BODY_CHUNKED;
	}
	if (said->n_length) {
		if (!canon_text_to_u64(said->length, &ret->length) || ret->length > INT64_MAX)
			return http1_fail(h, 400, "Content-Length is not a number");
		ret->kind = HTTP_BODY_LENGTH;
	}
	return 0;
}

static bool has_content(const struct http_body *body)
{
	return body->kind == HTTP_BODY_CHUNKED || body->length > 0;
}

/* Only websocket is carried on; any other Upgrade is an offer, and is dropped with its header. */
static int take_upgrade(struct http1 *h, const struct said *said)
{
	struct http_req *req = &h->req;

	if (!said->wants_upgrade || said->n_upgrade != 1 || req->http10 ||
		!canon_text_eq_fold(said->upgrade, "websocket"))
		return 0;
	if (!slice_eq_str(req->method, "GET") || req->body.kind != HTTP_BODY_NONE)
		return http1_fail(h, 400, "a websocket request must be a GET without a body");
	if (said->n_key != 1 || said->n_version != 1 || !slice_eq_str(said->version, "13"))
		return http1_fail(h, 400, "a websocket request requires one key and version 13");
	req->websocket = true;
	return 0;
}

static int take_expect(struct http1 *h, const struct said *said)
{
	if (said->n_expect == 0 || h->req.http10)
		return 0;
	if (said->n_expect > 1 || !canon_text_eq_fold(said->expect, "100-continue"))
		return http1_fail(h, 417, "Expect is not 100-continue");
	h->req.expect_continue = has_content(&h->req.body);
	return 0;
}

static int check_connect(struct http1 *h)
{
	struct http_req *req = &h->req;

	if (has_content(&req->body))
		return http1_fail(h, 400, "CONNECT with a body");
	req->body = (struct http_body){.kind = HTTP_BODY_TUNNEL};
	return 0;
}

int http1_frame_req(struct http1 *h)
{
	struct http_req *req = &h->req;
	struct said said;

	if (gather_framing(h, &req->headers, &said) < 0)
		return -EBADMSG;
	if (said.n_host > 1)
		return http1_fail(h, 400, "more than one Host header");
	if (said.n_host == 0 && !req->http10)
		return http1_fail(h, 400, "no Host header");
	if (take_body(h, &said, req->http10, &req->body) < 0)
		return -EBADMSG;
	if (slice_eq_str(req->method, "TRACE") && has_content(&req->body))
		return http1_fail(h, 400, "TRACE with a body");
	req->keep_alive = req->http10 ? said.keep_alive && !said.close : !said.close;
	req->te_trailers = said.te_trailers && !req->http10;
	if (take_expect(h, &said) < 0)
		return -EBADMSG;
	if (req->form == HTTP_FORM_AUTHORITY)
		return check_connect(h);
	return take_upgrade(h, &said);
}

/* Statuses whose answers have no content whatever the headers say. */
static int frame_bodyless(struct http1 *h, const struct said *said)
{
	struct http_resp *resp = &h->resp;

	if (said->n_encoding || resp->body.length > 0)
		return http1_fail(h, 502, "a body where the status allows none");
	resp->body = (struct http_body){.kind = HTTP_BODY_NONE};
	return 0;
}

static int frame_101(struct http1 *h, const struct said *said)
{
	struct http_resp *resp = &h->resp;

	if (!h->was_websocket || resp->http10)
		return http1_fail(
			h, 502, "101 in response to a request without a websocket upgrade");
	if (!said->wants_upgrade || said->n_upgrade != 1 ||
		!canon_text_eq_fold(said->upgrade, "websocket"))
		return http1_fail(h, 502, "101 that switches to another protocol");
	resp->websocket = true;
	resp->body = (struct http_body){.kind = HTTP_BODY_TUNNEL};
	return 0;
}

static int frame_resp_body(struct http1 *h, const struct said *said)
{
	struct http_resp *resp = &h->resp;

	if (resp->status < 200 || resp->status == 204) {
		if (frame_bodyless(h, said) < 0)
			return -EBADMSG;
		return resp->status == 101 ? frame_101(h, said) : 0;
	}
	if (h->was_connect && resp->status < 300) {
		/* A length in the answer to CONNECT means nothing (RFC 9110, 9.3.6). */
		resp->body = (struct http_body){.kind = HTTP_BODY_TUNNEL};
		return 0;
	}
	if (h->was_head || resp->status == 304) {
		if (resp->body.kind != HTTP_BODY_LENGTH)
			resp->body.kind = HTTP_BODY_NONE;
		resp->body.absent = true;
		return 0;
	}
	if (resp->body.kind == HTTP_BODY_NONE)
		resp->body.kind = HTTP_BODY_CLOSE;
	return 0;
}

int http1_frame_resp(struct http1 *h)
{
	struct http_resp *resp = &h->resp;
	struct said said;

	if (gather_framing(h, &resp->headers, &said) < 0)
		return -EBADMSG;
	if (take_body(h, &said, resp->http10, &resp->body) < 0)
		return -EBADMSG;
	if (frame_resp_body(h, &said) < 0)
		return -EBADMSG;
	resp->keep_alive = resp->http10 ? said.keep_alive && !said.close : !said.close;
	if (resp->body.kind == HTTP_BODY_CLOSE || resp->body.kind == HTTP_BODY_TUNNEL)
		resp->keep_alive = false;
	return 0;
}
