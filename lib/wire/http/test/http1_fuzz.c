/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses the side and how the rest is cut. A request that is forwarded must be read
 * again as itself, whatever the pieces were; a response is made canonical and sent over a frame. */
#include <stdlib.h>
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/wire/http/canon/test/canon_rig.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct canon_rig *a, const struct canon_rig *b)
{
	return a->n_requests == b->n_requests && a->n_tunnel == b->n_tunnel &&
	       slice_eq(slice_of(a->out, a->n_out), slice_of(b->out, b->n_out));
}

static void check_requests(struct slice in, size_t step, bool proxy)
{
	struct canon_where where = {.canonical_host = canon_rig_host};
	struct canon_rig whole, cut, again;

	if (!proxy)
		where.target = (struct canon_name){true, slice_from_str("example.test"), 80};
	canon_rig_run(&whole, in, &where, 0, 0);
	canon_rig_run(&cut, in, &where, step, step);
	if (whole.status != cut.status || !is_same(&whole, &cut))
		abort();
	if (!proxy) {
		canon_rig_run(&again, slice_of(whole.out, whole.n_out), &where, 0, 0);
		/* What follows a message that closes is not read: it may be less, never more. */
		if (again.n_requests > whole.n_requests ||
			(whole.n_requests > 0 && again.n_requests == 0))
			abort();
		if (again.status != 0 || (again.n_requests == whole.n_requests &&
						 !slice_eq(slice_of(whole.out, whole.n_out),
							 slice_of(again.out, again.n_out))))
			abort();
		canon_rig_done(&again);
	}
	canon_rig_done(&whole);
	canon_rig_done(&cut);
}

static void cross(struct http_resp *resp, struct arena *arena)
{
	static uint8_t buf[CANON_MAX_HEAD + CANON_FRAME_HEADER], again[sizeof(buf)];
	struct wr wr = wr_init(buf, sizeof(buf)), out = wr_init(again, sizeof(again));
	struct http_fault fault;
	struct http_resp far;

	if (canon_make_resp(resp, &fault) < 0)
		return;
	if (canon_put_resp(&wr, 1, resp) < 0)
		abort();
	if (canon_get_resp(
		    slice_of(buf + CANON_FRAME_HEADER, wr.n - CANON_FRAME_HEADER), arena, &far) < 0)
		abort();
	if (canon_put_resp(&out, 1, &far) < 0 ||
		!slice_eq(slice_of(buf, wr.n), slice_of(again, out.n)))
		abort();
}

static void check_response(struct slice in, size_t step, const struct http_req *req)
{
	struct arena arena, far;
	struct http1 h;
	struct http1_event ev;

	arena_init(&arena, HTTP_ARENA_SIZE);
	arena_init(&far, HTTP_ARENA_SIZE);
	http1_init_response(&h, &arena, req);
	while (in.n > 0 && h.state != HTTP1_DONE && h.state != HTTP1_FAILED) {
		struct slice piece = canon_text_cut(in, 0, step);

		in = canon_text_cut(in, step, in.n);
		while (http1_read(&h, &piece, &ev) && ev.kind != HTTP1_EV_ERROR) {
			arena_reset(&far);
			if (ev.kind == HTTP1_EV_HEAD)
				cross(ev.resp, &far);
		}
	}
	(void)http1_eof(&h, &ev);
	arena_done(&arena);
	arena_done(&far);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	size_t step = how >> 3 ? how >> 3 : 1;
	struct slice in = slice_of(rd.p, rd.n);
	struct http_req req = {.method = slice_from_str("GET"), .websocket = (how & 7) == 5};

	if (size < 1)
		return 0;
	if ((how & 7) == 3)
		req.method = slice_from_str("HEAD");
	if ((how & 7) == 4)
		req.method = slice_from_str("CONNECT");
	if ((how & 7) < 2)
		check_requests(in, step, how & 1);
	else
		check_response(in, step, &req);
	return 0;
}
