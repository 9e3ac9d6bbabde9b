/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a hostile guest. A request that is accepted is canonical, crosses in a frame, and
 * what is written of it is read by our own reader of HTTP/1.1 as that one request. Input: u8
 * (bit 0: no body follows), then fields: u16 length + name, u16 length + value. */
#include <stdlib.h>
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/wire/http/canon/test/canon_rig.h"
#include "lib/wire/http/h2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t said[CANON_MAX_HEAD + CANON_FRAME_HEADER], again[sizeof(said)];
static uint8_t wire[4 * CANON_MAX_HEAD];

/* The target is whatever the request says, so that most inputs get past the comparison of names. */
static struct canon_where where_of(const struct http_req *req, char *buf, size_t size)
{
	struct canon_where where = {.scheme = HTTP_SCHEME_HTTPS, .canonical_host = canon_rig_host};
	struct slice authority = req->authority, host;
	uint16_t port = 0;
	size_t at;
	int n;

	if (authority.n == 0 && canon_find_header(&req->headers, "host", &at) == 0)
		authority = req->headers.list[at].value;
	if (canon_split_authority(authority, &host, &port) < 0)
		return where;
	n = canon_rig_host(host, buf, size);
	if (n <= 0)
		return where;
	where.target = (struct canon_name){true, slice_of(buf, (size_t)n), port ? port : 443};
	if (!canon_host_is_address(where.target.host))
		where.sni = (struct canon_name){true, where.target.host, 0};
	return where;
}

static void read_back(struct slice in, const struct canon_where *where, struct arena *arena)
{
	struct wr out = wr_init(again, sizeof(again));
	struct http_fault fault;
	struct http1 h;
	struct http1_event ev;

	http1_init_requests(&h, arena);
	if (!http1_read(&h, &in, &ev))
		abort();
	/* HTTP/1.1's reader knows fewer methods, and counts the bytes of lines. */
	if (ev.kind == HTTP1_EV_ERROR) {
		if (ev.fault.status != 431 && ev.fault.status != 501)
			abort();
		return;
	}
	if (in.n > 0 || canon_make_req(ev.req, where, arena, &fault) < 0 ||
		canon_put_req(&out, 1, ev.req) < 0)
		abort();
	if (!slice_eq(slice_of(said, out.n), slice_of(again, out.n)))
		abort();
}

static void check_request(struct h2_block *b, bool ended, struct arena *other)
{
	struct wr wr = wr_init(said, sizeof(said)), out = wr_init(wire, sizeof(wire));
	char host[HTTP_MAX_HOST + 1];
	struct canon_where where;
	struct http_fault fault;
	struct http_req req;

	if (h2_take_req(b, ended, &req, &fault) < 0)
		return;
	where = where_of(&req, host, sizeof(host));
	if (canon_make_req(&req, &where, b->arena, &fault) < 0)
		return;
	if (canon_check_req(&req) < 0 || canon_put_req(&wr, 1, &req) < 0 || req.websocket ||
		req.scheme != HTTP_SCHEME_HTTPS || req.form == HTTP_FORM_AUTHORITY)
		abort();
	if (canon_write_req(&out, &req, CANON_TO_ORIGIN) < 0)
		abort();
	read_back(slice_of(wire, out.n), &where, other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	struct http_headers trailers;
	struct h2_block b, t;
	struct arena arena, other, third;
	struct http_fault fault;

	arena_init(&arena, HTTP_ARENA_SIZE);
	arena_init(&other, HTTP_ARENA_SIZE);
	arena_init(&third, HTTP_ARENA_SIZE);
	h2_begin_req(&b, &arena);
	h2_begin_trailers(&t, &third);
	while (rd.n > 0 && !rd.bad) {
		struct slice name = rd_str(&rd), value = rd_str(&rd);

		if (rd.bad)
			break;
		h2_add(&b, name, value);
		h2_add(&t, name, value);
	}
	check_request(&b, how & 1, &other);
	if (h2_take_trailers(&t, &trailers, &fault) == 0 && canon_check_trailers(&trailers) < 0)
		abort();
	arena_done(&arena);
	arena_done(&other);
	arena_done(&third);
	return 0;
}
