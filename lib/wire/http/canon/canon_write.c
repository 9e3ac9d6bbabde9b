/* SPDX-License-Identifier: Apache-2.0 */
#include "canon.h"

#include <inttypes.h>

static void put_write(struct wr *wr, const char *text)
{
	wr_bytes(wr, slice_from_str(text));
}

static void put_headers(struct wr *wr, const struct http_headers *headers)
{
	for (size_t i = 0; i < headers->n; i++) {
		wr_bytes(wr, headers->list[i].name);
		put_write(wr, ": ");
		wr_bytes(wr, headers->list[i].value);
		put_write(wr, "\r\n");
	}
}

void canon_write_authority(struct wr *wr, const struct http_req *req, bool always_port)
{
	bool is_v6 = req->host.n > 0 && memchr(req->host.p, ':', req->host.n);

	put_write(wr, is_v6 ? "[" : "");
	wr_bytes(wr, req->host);
	put_write(wr, is_v6 ? "]" : "");
	if (always_port || req->port != canon_default_port(req->scheme))
		wr_printf(wr, ":%u", req->port);
}

static void put_target(struct wr *wr, const struct http_req *req, enum canon_to to)
{
	if (req->form == HTTP_FORM_AUTHORITY) {
		canon_write_authority(wr, req, true);
		return;
	}
	if (to == CANON_TO_PROXY) {
		put_write(wr, req->scheme == HTTP_SCHEME_HTTPS ? "https://" : "http://");
		canon_write_authority(wr, req, false);
		/* "OPTIONS *" to a proxy is the absolute form without a path (RFC 9112, 3.2.4). */
		if (req->form == HTTP_FORM_ASTERISK)
			return;
	}
	wr_bytes(wr, req->path);
	if (req->has_query) {
		put_write(wr, "?");
		wr_bytes(wr, req->query);
	}
}

static void put_body_kind(struct wr *wr, const struct http_body *body)
{
	if (body->kind == HTTP_BODY_CHUNKED)
		put_write(wr, "transfer-encoding: chunked\r\n");
	if (body->kind == HTTP_BODY_LENGTH)
		wr_printf(wr, "content-length: %" PRIu64 "\r\n", body->length);
}

bool canon_must_close(const struct http_req *req)
{
	static const char *const bodyless[] = {"GET", "HEAD", "DELETE", "OPTIONS"};
	bool has_body = req->body.kind == HTTP_BODY_CHUNKED || req->body.length > 0;

	for (size_t i = 0; i < ARRAY_LEN(bodyless); i++)
		if (slice_eq_str(req->method, bodyless[i]))
			return has_body;
	return false;
}

static void put_connection(struct wr *wr, const struct http_req *req)
{
	bool close = canon_must_close(req);

	if (req->websocket)
		put_write(wr, "connection: upgrade\r\nupgrade: websocket\r\n");
	else if (req->te_trailers)
		put_write(wr, close ? "te: trailers\r\nconnection: te, close\r\n"
				    : "te: trailers\r\nconnection: te\r\n");
	else if (close)
		put_write(wr, "connection: close\r\n");
}

int canon_write_req(struct wr *wr, const struct http_req *req, enum canon_to to)
{
	wr_bytes(wr, req->method);
	put_write(wr, " ");
	put_target(wr, req, to);
	put_write(wr, " HTTP/1.1\r\nhost: ");
	canon_write_authority(wr, req, req->form == HTTP_FORM_AUTHORITY);
	put_write(wr, "\r\n");
	put_headers(wr, &req->headers);
	put_connection(wr, req);
	put_body_kind(wr, &req->body);
	if (req->expect_continue)
		put_write(wr, "expect: 100-continue\r\n");
	put_write(wr, "\r\n");
	return wr_finish(wr);
}

void canon_fit_http10(struct http_resp *resp)
{
	if (resp->body.kind == HTTP_BODY_CHUNKED)
		resp->body.kind = resp->body.absent ? HTTP_BODY_NONE : HTTP_BODY_CLOSE;
}

int canon_write_resp(struct wr *wr, const struct http_resp *resp, bool close)
{
	wr_printf(wr, "HTTP/1.1 %u %s\r\n", resp->status, canon_reason(resp->status));
	put_headers(wr, &resp->headers);
	if (resp->websocket)
		put_write(wr, "upgrade: websocket\r\nconnection: upgrade\r\n");
	else if (resp->status >= 200 && resp->body.kind != HTTP_BODY_TUNNEL &&
		 (close || resp->body.kind == HTTP_BODY_CLOSE))
		put_write(wr, "connection: close\r\n");
	put_body_kind(wr, &resp->body);
	put_write(wr, "\r\n");
	return wr_finish(wr);
}

void canon_write_chunk(struct wr *wr, size_t n)
{
	wr_printf(wr, "%zx\r\n", n);
}

int canon_write_last_chunk(struct wr *wr, const struct http_headers *trailers)
{
	put_write(wr, "0\r\n");
	if (trailers)
		put_headers(wr, trailers);
	put_write(wr, "\r\n");
	return wr_finish(wr);
}

const char *canon_reason(uint16_t status)
{
	static const struct {
		uint16_t status;
		const char *text;
	} reasons[] = {
		{100, "Continue"},
		{101, "Switching Protocols"},
		{103, "Early Hints"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{303, "See Other"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{411, "Length Required"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{414, "URI Too Long"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "Other";
}
