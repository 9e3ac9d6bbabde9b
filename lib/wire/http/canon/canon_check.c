/* SPDX-License-Identifier: Apache-2.0 */
#include "canon_internal.h"

#include <errno.h>

static bool is_host_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
	       c == '_' || c == ':';
}

static int check_host(struct slice host)
{
	if (host.n == 0 || host.n > HTTP_MAX_HOST)
		return -EINVAL;
	for (size_t i = 0; i < host.n; i++)
		if (!is_host_byte(host.p[i]))
			return -EINVAL;
	return 0;
}

static int check_headers(const struct http_headers *headers)
{
	size_t bytes = 0;

	if (headers->n > HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS)
		return -EINVAL;
	for (size_t i = 0; i < headers->n; i++) {
		struct http_header h = headers->list[i];

		bytes += h.name.n + h.value.n;
		if (!canon_text_is_lower_token(h.name) || !canon_text_is_trimmed_value(h.value))
			return -EINVAL;
		if (canon_is_dropped(h.name) || canon_is_disguised(h.name))
			return -EINVAL;
	}
	return bytes > HTTP_MAX_HEAD ? -EINVAL : 0;
}

int canon_check_trailers(const struct http_headers *trailers)
{
	size_t bytes = 0;

	if (trailers->n > HTTP_MAX_TRAILERS)
		return -EINVAL;
	for (size_t i = 0; i < trailers->n; i++) {
		struct http_header h = trailers->list[i];

		bytes += h.name.n + h.value.n;
		if (!canon_text_is_lower_token(h.name) || !canon_text_is_trimmed_value(h.value))
			return -EINVAL;
		if (canon_is_forbidden_trailer(h.name))
			return -EINVAL;
	}
	return bytes > HTTP_MAX_TRAILER_BYTES ? -EINVAL : 0;
}

static int check_target(const struct http_req *req)
{
	bool is_connect = slice_eq_str(req->method, "CONNECT");

	if (is_connect != (req->form == HTTP_FORM_AUTHORITY))
		return -EINVAL;
	if (!req->has_query && req->query.n > 0)
		return -EINVAL;
	if (is_connect)
		return req->path.n > 0 || req->has_query ? -EINVAL : 0;
	if (req->form == HTTP_FORM_ASTERISK)
		return !slice_eq_str(req->method, "OPTIONS") || !slice_eq_str(req->path, "*") ||
				       req->has_query
			       ? -EINVAL
			       : 0;
	if (req->form != HTTP_FORM_ORIGIN || canon_check_path(req->path) < 0)
		return -EINVAL;
	return canon_check_query(req->query);
}

static bool is_length_right(const struct http_body *body)
{
	return body->kind == HTTP_BODY_LENGTH ? body->length <= INT64_MAX : body->length == 0;
}

static int check_req_body(const struct http_req *req)
{
	enum http_body_kind kind = req->body.kind;
	bool has_body = kind == HTTP_BODY_CHUNKED || req->body.length > 0;

	if (req->body.absent || !is_length_right(&req->body))
		return -EINVAL;
	if (slice_eq_str(req->method, "CONNECT"))
		return kind == HTTP_BODY_TUNNEL && !req->expect_continue && !req->websocket
			       ? 0
			       : -EINVAL;
	if (kind > HTTP_BODY_CHUNKED)
		return -EINVAL;
	if (slice_eq_str(req->method, "TRACE") && has_body)
		return -EINVAL;
	if (req->websocket && (kind != HTTP_BODY_NONE || !slice_eq_str(req->method, "GET")))
		return -EINVAL;
	return req->expect_continue && !has_body ? -EINVAL : 0;
}

int canon_check_req(const struct http_req *req)
{
	if (!canon_text_is_token(req->method) || req->method.n > HTTP_MAX_METHOD)
		return -EINVAL;
	if (req->scheme > HTTP_SCHEME_HTTPS || req->port == 0 || check_host(req->host) < 0)
		return -EINVAL;
	if (canon_target_length(req) > HTTP_MAX_TARGET || check_target(req) < 0)
		return -EINVAL;
	return check_req_body(req) < 0 ? -EINVAL : check_headers(&req->headers);
}

static int check_resp_body(const struct http_resp *resp)
{
	enum http_body_kind kind = resp->body.kind;
	bool may_have_none = resp->status < 200 || resp->status == 204;

	if (!is_length_right(&resp->body) || kind > HTTP_BODY_TUNNEL)
		return -EINVAL;
	if (resp->status == 101)
		return resp->websocket && kind == HTTP_BODY_TUNNEL && !resp->body.absent ? 0
											 : -EINVAL;
	if (resp->websocket || (kind == HTTP_BODY_TUNNEL && resp->status / 100 != 2))
		return -EINVAL;
	if (may_have_none)
		return (kind == HTTP_BODY_NONE || kind == HTTP_BODY_TUNNEL) && !resp->body.absent
			       ? 0
			       : -EINVAL;
	if (resp->status == 304 && !resp->body.absent)
		return -EINVAL;
	/* Nothing follows what is absent, so there is no end of the connection to wait for. */
	return resp->body.absent && kind != HTTP_BODY_LENGTH && kind != HTTP_BODY_NONE ? -EINVAL
										       : 0;
}

int canon_check_resp(const struct http_resp *resp)
{
	if (resp->status < 100 || resp->status > 599)
		return -EINVAL;
	return check_resp_body(resp) < 0 ? -EINVAL : check_headers(&resp->headers);
}
