/* SPDX-License-Identifier: Apache-2.0 */
/* Frames from a hostile edge. A head that is accepted is said again in the same bytes, and what is
 * written to the origin is read by our own reader as that one request. */
#include <stdlib.h>
#include "lib/wire/http/canon/canon_frame.h"
#include "canon_rig.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t said[CANON_MAX_HEAD + CANON_FRAME_HEADER], again[sizeof(said)];
static uint8_t wire[4 * CANON_MAX_HEAD];

static bool is_host_canonical(struct slice host)
{
	char buf[HTTP_MAX_HOST + 1];
	int n = canon_rig_host(host, buf, sizeof(buf));

	return n > 0 && slice_eq(host, slice_of(buf, (size_t)n));
}

/* -1 when our reader refuses, which it may for a method, a count or a size. */
static int read_back(
	struct slice in, struct canon_where *where, struct arena *arena, struct wr *out)
{
	struct http_fault fault;
	struct http1 h;
	struct http1_event ev;

	http1_init_requests(&h, arena);
	if (!http1_read(&h, &in, &ev))
		abort();
	if (ev.kind == HTTP1_EV_ERROR)
		return ev.fault.status == 431 || ev.fault.status == 501 ? -1 : -2;
	if (in.n > 0 || canon_make_req(ev.req, where, arena, &fault) < 0)
		abort();
	return canon_put_req(out, 1, ev.req) < 0 ? -2 : 0;
}

static void check_written(const struct http_req *req, struct slice frame, struct arena *arena)
{
	struct canon_where where = {.scheme = req->scheme, .canonical_host = canon_rig_host};
	struct wr wr = wr_init(wire, sizeof(wire)), out = wr_init(again, sizeof(again));
	int r;

	if (req->form != HTTP_FORM_AUTHORITY)
		where.target = (struct canon_name){true, req->host, req->port};
	if (req->scheme == HTTP_SCHEME_HTTPS && !canon_host_is_address(req->host))
		where.sni = (struct canon_name){true, req->host, 0};
	if (canon_write_req(&wr, req, CANON_TO_ORIGIN) < 0)
		abort();
	r = read_back(slice_of(wire, wr.n), &where, arena, &out);
	/* A websocket without its key is for the origin to refuse. */
	if (r == -2 && !req->websocket)
		abort();
	if (r == 0 && !slice_eq(frame, slice_of(again, out.n)))
		abort();
}

static void check_request(struct slice payload, struct arena *arena, struct arena *other)
{
	struct wr wr = wr_init(said, sizeof(said));
	struct http_req req;
	struct slice norm;
	unsigned int odd;

	if (canon_get_req(payload, arena, &req) < 0)
		return;
	if (canon_put_req(&wr, 1, &req) < 0 ||
		!slice_eq(slice_of(said + CANON_FRAME_HEADER, wr.n - CANON_FRAME_HEADER), payload))
		abort();
	if (req.form == HTTP_FORM_ORIGIN && canon_normal_path(req.path, other, &norm, &odd) == 0 &&
		canon_check_path(norm) < 0)
		abort();
	arena_reset(other);
	if (is_host_canonical(req.host))
		check_written(&req, slice_of(said, wr.n), other);
}

static void check_frame(const struct canon_frame *f, struct arena *arena, struct arena *other)
{
	struct wr wr = wr_init(said, sizeof(said));
	struct http_resp resp;
	struct http_headers trailers;

	arena_reset(arena);
	arena_reset(other);
	if (f->kind == CANON_HEAD) {
		check_request(f->payload, arena, other);
		arena_reset(arena);
		if (canon_get_resp(f->payload, arena, &resp) == 0 &&
			canon_put_resp(&wr, 1, &resp) < 0)
			abort();
	} else if (f->kind == CANON_END) {
		if (canon_get_end(f->payload, arena, &trailers) == 0 &&
			canon_put_end(&wr, 1, &trailers) < 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	size_t step = how ? how : size + 1;
	struct arena arena, other;
	struct canon_reader reader;
	struct canon_frame frame;

	arena_init(&arena, HTTP_ARENA_SIZE);
	arena_init(&other, HTTP_ARENA_SIZE);
	canon_reader_init(&reader);
	while (rd.n > 0) {
		struct slice in = rd_bytes(&rd, MIN(step, rd.n));

		while (canon_reader_feed(&reader, &in, &frame) == 1)
			check_frame(&frame, &arena, &other);
	}
	canon_reader_done(&reader);
	arena_done(&arena);
	arena_done(&other);
	return 0;
}
