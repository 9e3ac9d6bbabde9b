/* SPDX-License-Identifier: Apache-2.0 */
#include "canon_frame.h"

#include <errno.h>
#include "lib/base/mem.h"

enum { TYPE_REQUEST = 1, TYPE_RESPONSE = 2 };
enum { FLAG_EXPECT = 1, FLAG_TE = 2, FLAG_WEBSOCKET = 4, FLAG_QUERY = 8, FLAG_ABSENT = 16 };
#define REQUEST_FLAGS (FLAG_EXPECT | FLAG_TE | FLAG_WEBSOCKET | FLAG_QUERY)
#define RESPONSE_FLAGS (FLAG_WEBSOCKET | FLAG_ABSENT)

static const struct {
	uint32_t min, max;
} sizes[CANON_N_KINDS] = {
	[CANON_HEAD] = {1, CANON_MAX_HEAD},
	[CANON_DATA] = {1, CANON_MAX_DATA},
	[CANON_END] = {2, CANON_MAX_END},
	[CANON_RESET] = {1, 1},
};

void canon_reader_init(struct canon_reader *rd)
{
	*rd = (struct canon_reader){0};
}

void canon_reader_done(struct canon_reader *rd)
{
	free(rd->buf);
	*rd = (struct canon_reader){.bad = true};
}

/* 1 if the 8 bytes are complete and valid. */
static int collect_header(struct canon_reader *rd, struct slice *in, struct canon_frame *ret)
{
	struct slice s = slice_take(in, CANON_FRAME_HEADER - rd->n_head);
	struct rd head = rd_init(slice_of(rd->head, CANON_FRAME_HEADER));
	bool fresh = rd->n_head < CANON_FRAME_HEADER;
	uint32_t n;
	uint8_t kind;

	if (s.n)
		memcpy(&rd->head[rd->n_head], s.p, s.n);
	rd->n_head += s.n;
	if (rd->n_head < CANON_FRAME_HEADER)
		return 0;
	n = rd_u32(&head);
	kind = rd_u8(&head);
	ret->stream = rd_u24(&head);
	if (kind == 0 || kind >= CANON_N_KINDS || n < sizes[kind].min || n > sizes[kind].max)
		return -EBADMSG;
	if (ret->stream == 0)
		return -EBADMSG;
	ret->kind = (enum canon_kind)kind;
	if (fresh)
		rd->want = n;
	return 1;
}

/* The payload as one run, in place when *in has all of it. */
static bool collect_payload(struct canon_reader *rd, struct slice *in, struct slice *ret)
{
	struct slice s;

	if (rd->n_buf == 0 && in->n >= rd->want) {
		*ret = slice_take(in, rd->want);
		rd->want = 0;
		return true;
	}
	if (!rd->buf)
		rd->buf = xmalloc(CANON_MAX_HEAD);
	s = slice_take(in, rd->want);
	if (s.n)
		memcpy(rd->buf + rd->n_buf, s.p, s.n);
	rd->n_buf += s.n;
	rd->want -= s.n;
	*ret = slice_of(rd->buf, rd->n_buf);
	return rd->want == 0;
}

int canon_reader_feed(struct canon_reader *rd, struct slice *in, struct canon_frame *ret)
{
	int r;

	if (rd->bad)
		return -EBADMSG;
	r = collect_header(rd, in, ret);
	if (r <= 0) {
		rd->bad = r < 0;
		return r;
	}
	if (ret->kind == CANON_DATA) {
		ret->payload = slice_take(in, rd->want);
		rd->want -= ret->payload.n;
		if (ret->payload.n == 0)
			return 0;
	} else if (!collect_payload(rd, in, &ret->payload)) {
		return 0;
	}
	if (rd->want == 0)
		rd->n_head = rd->n_buf = 0;
	return 1;
}

size_t canon_reader_data_left(const struct canon_reader *rd)
{
	bool in_data = !rd->bad && rd->n_head == CANON_FRAME_HEADER && rd->head[4] == CANON_DATA;

	return in_data ? rd->want : 0;
}

void canon_reader_pass_data(struct canon_reader *rd, size_t n)
{
	if (n > canon_reader_data_left(rd)) {
		rd->bad = true;
		return;
	}
	rd->want -= n;
	if (rd->want == 0)
		rd->n_head = 0;
}

static int put_header(struct wr *wr, size_t n, enum canon_kind kind, uint32_t stream)
{
	if (stream == 0 || stream > CANON_MAX_STREAM || n < sizes[kind].min || n > sizes[kind].max)
		return -EINVAL;
	wr_u32(wr, (uint32_t)n);
	wr_u8(wr, (uint8_t)kind);
	wr_u24(wr, stream);
	return wr_finish(wr);
}

static void put_headers(struct wr *wr, const struct http_headers *headers)
{
	wr_u16(wr, (uint16_t)headers->n);
	for (size_t i = 0; i < headers->n; i++) {
		wr_str(wr, headers->list[i].name);
		wr_str(wr, headers->list[i].value);
	}
}

static void put_body(struct wr *wr, const struct http_body *body)
{
	wr_u8(wr, (uint8_t)body->kind);
	wr_u64(wr, body->length);
}

/* Writes the length of what came after the header into it. */
static int finish_frame(struct wr *wr, size_t start, enum canon_kind kind)
{
	size_t n = wr->n - start - CANON_FRAME_HEADER;
	struct wr at;

	if (wr_finish(wr) < 0)
		return -EMSGSIZE;
	if (n > sizes[kind].max)
		return -EMSGSIZE;
	at = wr_init(wr->p + start, CANON_FRAME_HEADER);
	wr_u32(&at, (uint32_t)n);
	return 0;
}

int canon_put_req(struct wr *wr, uint32_t stream, const struct http_req *req)
{
	size_t start = wr->n;
	unsigned int flags = 0;

	if (canon_check_req(req) < 0)
		return -EINVAL;
	if (put_header(wr, 1, CANON_HEAD, stream) < 0)
		return wr->bad ? -EMSGSIZE : -EINVAL;
	flags |= req->expect_continue ? FLAG_EXPECT : 0;
	flags |= req->te_trailers ? FLAG_TE : 0;
	flags |= req->websocket ? FLAG_WEBSOCKET : 0;
	flags |= req->has_query ? FLAG_QUERY : 0;
	wr_u8(wr, TYPE_REQUEST);
	wr_u8(wr, (uint8_t)flags);
	wr_u8(wr, (uint8_t)req->scheme);
	wr_str(wr, req->method);
	wr_str(wr, req->host);
	wr_u16(wr, req->port);
	wr_str(wr, req->path);
	wr_str(wr, req->query);
	put_body(wr, &req->body);
	put_headers(wr, &req->headers);
	return finish_frame(wr, start, CANON_HEAD);
}

int canon_put_resp(struct wr *wr, uint32_t stream, const struct http_resp *resp)
{
	size_t start = wr->n;
	unsigned int flags = 0;

	if (canon_check_resp(resp) < 0)
		return -EINVAL;
	if (put_header(wr, 1, CANON_HEAD, stream) < 0)
		return wr->bad ? -EMSGSIZE : -EINVAL;
	flags |= resp->websocket ? FLAG_WEBSOCKET : 0;
	flags |= resp->body.absent ? FLAG_ABSENT : 0;
	wr_u8(wr, TYPE_RESPONSE);
	wr_u8(wr, (uint8_t)flags);
	wr_u16(wr, resp->status);
	put_body(wr, &resp->body);
	put_headers(wr, &resp->headers);
	return finish_frame(wr, start, CANON_HEAD);
}

int canon_put_end(struct wr *wr, uint32_t stream, const struct http_headers *trailers)
{
	static const struct http_headers none;
	size_t start = wr->n;

	trailers = trailers ? trailers : &none;
	if (canon_check_trailers(trailers) < 0)
		return -EINVAL;
	if (put_header(wr, 2, CANON_END, stream) < 0)
		return wr->bad ? -EMSGSIZE : -EINVAL;
	put_headers(wr, trailers);
	return finish_frame(wr, start, CANON_END);
}

int canon_put_reset(struct wr *wr, uint32_t stream, uint8_t code)
{
	if (put_header(wr, 1, CANON_RESET, stream) < 0)
		return wr->bad ? -EMSGSIZE : -EINVAL;
	wr_u8(wr, code);
	return wr_finish(wr);
}

int canon_put_data_head(struct wr *wr, uint32_t stream, size_t n)
{
	if (put_header(wr, n, CANON_DATA, stream) < 0)
		return wr->bad ? -EMSGSIZE : -EINVAL;
	return 0;
}

static void get_headers(struct rd *rd, struct arena *arena, size_t max, struct http_headers *ret)
{
	size_t n = rd_u16(rd);

	if (rd->bad || n > max) {
		rd->bad = true;
		return;
	}
	canon_headers_init(ret, arena, max);
	if (arena_is_full(arena)) {
		rd->bad = true;
		return;
	}
	for (size_t i = 0; i < n && !rd->bad; i++) {
		ret->list[i].name = rd_str(rd);
		ret->list[i].value = rd_str(rd);
		ret->n++;
	}
}

static struct http_body get_body(struct rd *rd)
{
	struct http_body body = {0};
	uint8_t kind = rd_u8(rd);

	body.length = rd_u64(rd);
	if (kind > HTTP_BODY_TUNNEL)
		rd->bad = true;
	else
		body.kind = (enum http_body_kind)kind;
	return body;
}

static uint8_t get_flags(struct rd *rd, uint8_t type, unsigned int allowed)
{
	uint8_t flags;

	if (rd_u8(rd) != type)
		rd->bad = true;
	flags = rd_u8(rd);
	if (flags & ~allowed)
		rd->bad = true;
	return flags;
}

/* CONNECT has no path, and only "*" does not begin with a slash. */
static enum http_form form_of(const struct http_req *req)
{
	if (slice_eq_str(req->method, "CONNECT"))
		return HTTP_FORM_AUTHORITY;
	return slice_eq_str(req->path, "*") ? HTTP_FORM_ASTERISK : HTTP_FORM_ORIGIN;
}

int canon_get_req(struct slice payload, struct arena *arena, struct http_req *ret)
{
	struct rd rd = rd_init(payload);
	uint8_t flags = get_flags(&rd, TYPE_REQUEST, REQUEST_FLAGS), scheme = rd_u8(&rd);

	*ret = (struct http_req){.keep_alive = true};
	ret->expect_continue = flags & FLAG_EXPECT;
	ret->te_trailers = flags & FLAG_TE;
	ret->websocket = flags & FLAG_WEBSOCKET;
	ret->has_query = flags & FLAG_QUERY;
	ret->method = rd_str(&rd);
	ret->host = rd_str(&rd);
	ret->port = rd_u16(&rd);
	ret->path = rd_str(&rd);
	ret->query = rd_str(&rd);
	ret->body = get_body(&rd);
	get_headers(&rd, arena, HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS, &ret->headers);
	if (rd_finish(&rd) < 0 || scheme > HTTP_SCHEME_HTTPS)
		return -EBADMSG;
	ret->scheme = (enum http_scheme)scheme;
	ret->form = form_of(ret);
	return canon_check_req(ret) < 0 ? -EBADMSG : 0;
}

int canon_get_resp(struct slice payload, struct arena *arena, struct http_resp *ret)
{
	struct rd rd = rd_init(payload);
	uint8_t flags = get_flags(&rd, TYPE_RESPONSE, RESPONSE_FLAGS);

	*ret = (struct http_resp){.keep_alive = true};
	ret->websocket = flags & FLAG_WEBSOCKET;
	ret->status = rd_u16(&rd);
	ret->body = get_body(&rd);
	ret->body.absent = flags & FLAG_ABSENT;
	get_headers(&rd, arena, HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS, &ret->headers);
	if (rd_finish(&rd) < 0)
		return -EBADMSG;
	return canon_check_resp(ret) < 0 ? -EBADMSG : 0;
}

int canon_get_end(struct slice payload, struct arena *arena, struct http_headers *ret)
{
	struct rd rd = rd_init(payload);

	*ret = (struct http_headers){0};
	get_headers(&rd, arena, HTTP_MAX_TRAILERS, ret);
	if (rd_finish(&rd) < 0)
		return -EBADMSG;
	return canon_check_trailers(ret) < 0 ? -EBADMSG : 0;
}
