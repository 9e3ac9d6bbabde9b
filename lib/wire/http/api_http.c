/* SPDX-License-Identifier: Apache-2.0 */
#include "api_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api_http_internal.h"
#include "lib/base/mem.h"

void api_http_done(struct api_http *h)
{
	free(h->buf);
	*h = (struct api_http){0};
}

void api_http_reset(struct api_http *h)
{
	api_http_done(h);
}

int api_http_refuse(struct api_http *h, int status, const char *why)
{
	h->state = API_HTTP_BAD;
	h->status = status;
	h->why = why;
	h->keep = false;
	return -EBADMSG;
}

static void need_room(struct api_http *h, size_t more)
{
	if (h->room - h->n >= more)
		return;
	h->room = MAX(h->n + more, h->room ? 2 * h->room : 1024);
	h->buf = xrealloc(h->buf, h->room);
}

/* Line ends are CRLF and nothing else; fails at the first wrong byte, not after a timeout. */
static bool is_clean(const struct api_http *h, char c)
{
	char before = h->n ? h->buf[h->n - 1] : 0;

	if (c == '\n')
		return before == '\r';
	return before != '\r' && c != '\0';
}

static bool has_head_end(const struct api_http *h)
{
	return h->n >= 4 && memcmp(h->buf + h->n - 4, "\r\n\r\n", 4) == 0;
}

/* The request line and headers are NUL-terminated in place; a body follows after them. */
static void end_head(struct api_http *h)
{
	h->n_head = h->n;
	/* The parts point into buf, so it must not move again: make it whole before they are set.
	 */
	if (api_http_parse_length(h) < 0)
		return;
	need_room(h, h->body_len + 1);
	if (api_http_parse_head(h) < 0)
		return;
	h->state = h->body_len ? API_HTTP_IN_BODY : API_HTTP_READY;
	h->body = slice_of(h->buf + h->n_head, h->body_len);
}

static size_t feed_head(struct api_http *h, struct slice in)
{
	size_t i = 0;

	while (i < in.n && h->state == API_HTTP_IN_HEAD) {
		char c = (char)in.p[i];

		if (!is_clean(h, c)) {
			(void)api_http_refuse(h, 400, "the head has a bare CR or LF, or a NUL");
			return i;
		}
		need_room(h, 1);
		h->buf[h->n++] = c;
		i++;
		if (has_head_end(h))
			end_head(h);
		else if (h->n >= API_HTTP_MAX_HEAD)
			(void)api_http_refuse(h, 431, "the head is larger than 16 KiB");
	}
	return i;
}

static size_t feed_body(struct api_http *h, struct slice in)
{
	size_t k = MIN(in.n, h->n_head + h->body_len - h->n);

	memcpy(h->buf + h->n, in.p, k);
	h->n += k;
	if (h->n == h->n_head + h->body_len)
		h->state = API_HTTP_READY;
	return k;
}

size_t api_http_feed(struct api_http *h, struct slice in)
{
	size_t n = 0;

	if (in.n && h->state == API_HTTP_IN_HEAD)
		n = feed_head(h, in);
	if (n < in.n && h->state == API_HTTP_IN_BODY)
		n += feed_body(h, slice_of(in.p + n, in.n - n));
	return n;
}

const char *api_http_query(const struct api_http *h, const char *key)
{
	for (size_t i = 0; i < h->n_query; i++)
		if (strcmp(h->query[i].key, key) == 0)
			return h->query[i].value;
	return NULL;
}

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{101, "Switching Protocols"},
	{200, "OK"},
	{201, "Created"},
	{202, "Accepted"},
	{204, "No Content"},
	{400, "Bad Request"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{409, "Conflict"},
	{411, "Length Required"},
	{413, "Content Too Large"},
	{417, "Expectation Failed"},
	{431, "Request Header Fields Too Large"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{503, "Service Unavailable"},
	{504, "Gateway Timeout"},
	{505, "HTTP Version Not Supported"},
};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

size_t api_http_put_head(char *buf, int status, const char *type, size_t body_len, bool keep)
{
	char length[40] = "", kind[100] = "";

	/* A 204 has no body and must not say a length. */
	if (status != 204)
		(void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", body_len);
	if (body_len)
		(void)snprintf(kind, sizeof(kind), "Content-Type: %s\r\n",
			type ? type : "application/json");
	return (size_t)snprintf(buf, API_HTTP_HEAD_ROOM,
		"HTTP/1.1 %d %s\r\n%s%sConnection: %s\r\n\r\n", status, reason_of(status), kind,
		length, keep ? "keep-alive" : "close");
}

size_t api_http_put_chunked_head(char *buf)
{
	return (size_t)snprintf(buf, API_HTTP_HEAD_ROOM,
		"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
		"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
}

size_t api_http_put_upgrade(char *buf)
{
	return (size_t)snprintf(buf, API_HTTP_HEAD_ROOM,
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
		"Upgrade: sbx-stream\r\n\r\n");
}

size_t api_http_put_chunk_size(char *buf, size_t n)
{
	return (size_t)snprintf(buf, API_HTTP_HEAD_ROOM, "%zx\r\n", n);
}
