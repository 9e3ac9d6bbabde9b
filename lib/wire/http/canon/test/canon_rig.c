/* SPDX-License-Identifier: Apache-2.0 */
#include "canon_rig.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/base/mem.h"

/* A request may become longer, by its host; never as much as this. */
#define ROOM(n) (32 * (n) + 4096)

int canon_rig_host(struct slice text, char *buf, size_t size)
{
	bool is_v6 = text.n > 0 && memchr(text.p, ':', text.n);

	if (text.n == 0 || text.n >= size)
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = canon_text_lower(text.p[i]);
		bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= (is_v6 ? 'f' : 'z')) ||
			  c == '.' || (is_v6 ? c == ':' : c == '-' || c == '_');

		if (!ok)
			return -EINVAL;
		buf[i] = (char)c;
	}
	return (int)text.n;
}

struct run {
	struct canon_rig *rig;
	const struct canon_where *where;
	struct arena arena, far;
	struct http1 h;
	struct wr out, body;
	struct canon_flow flow;
	uint8_t *frame, *again; /* one head, said twice */
	size_t room;
	size_t begun; /* output before the request under way */
	struct http_req *req;
	bool over, tunnel;
};

static void stop(struct run *run, const struct http_fault *fault)
{
	run->rig->status = fault->status;
	run->rig->why = fault->why;
	run->out.n = run->begun;
	run->over = true;
}

/* What edge encodes egress must decode to the same; anything else is a bug of ours. */
static void cross(struct run *run, struct http_req *req, struct http_req *ret)
{
	struct wr wr = wr_init(run->frame, run->room), again = wr_init(run->again, run->room);
	struct slice in;
	struct canon_reader reader;
	struct canon_frame frame;

	canon_reader_init(&reader);
	if (canon_put_req(&wr, 7, req) < 0)
		abort();
	in = slice_of(run->frame, wr.n);
	if (canon_reader_feed(&reader, &in, &frame) != 1 || frame.kind != CANON_HEAD || in.n > 0)
		abort();
	if (canon_get_req(frame.payload, &run->far, ret) < 0)
		abort();
	if (canon_put_req(&again, 7, ret) < 0 ||
		!slice_eq(slice_of(run->again, again.n), slice_of(run->frame, wr.n)))
		abort();
	canon_reader_done(&reader);
}

static void on_head(struct run *run, struct http_req *req)
{
	struct http_fault fault;
	struct http_req far;

	run->begun = run->out.n;
	run->req = req;
	run->body.n = 0;
	run->flow = (struct canon_flow){0};
	if (canon_make_req(req, run->where, &run->arena, &fault) < 0) {
		stop(run, &fault);
		return;
	}
	arena_reset(&run->far);
	cross(run, req, &far);
	if (canon_flow_req(&run->flow, &far) < 0 ||
		canon_write_req(&run->out, &far, CANON_TO_ORIGIN) < 0)
		abort();
}

static void on_data(struct run *run, struct slice data)
{
	if (canon_flow_data(&run->flow, data.n) < 0)
		abort();
	wr_bytes(&run->body, data);
}

static void on_end(struct run *run, const struct http_headers *trailers)
{
	bool chunked = run->req->body.kind == HTTP_BODY_CHUNKED;

	if (canon_flow_end(&run->flow, trailers) < 0)
		abort();
	if (chunked && run->body.n > 0)
		canon_write_chunk(&run->out, run->body.n);
	wr_bytes(&run->out, slice_of(run->body.p, run->body.n));
	if (chunked && run->body.n > 0)
		wr_bytes(&run->out, slice_from_str("\r\n"));
	if (chunked && canon_write_last_chunk(&run->out, trailers) < 0)
		abort();
	run->begun = run->out.n;
	run->rig->n_requests++;
	if (run->req->body.kind == HTTP_BODY_TUNNEL || run->req->websocket) {
		run->tunnel = true;
	} else if (!run->req->keep_alive) {
		run->over = true;
	} else {
		arena_reset(&run->arena);
		http1_next(&run->h, &run->arena);
	}
}

static void on_event(struct run *run, const struct http1_event *ev)
{
	if (ev->kind == HTTP1_EV_HEAD)
		on_head(run, ev->req);
	else if (ev->kind == HTTP1_EV_DATA)
		on_data(run, ev->data);
	else if (ev->kind == HTTP1_EV_END)
		on_end(run, ev->trailers);
	else
		stop(run, &ev->fault);
}

/* A heap copy of each piece, so that the address sanitizer sees who looks behind it. */
static void feed(struct run *run, struct slice piece)
{
	uint8_t *copy = xmalloc(piece.n);
	struct slice in = slice_of(copy, piece.n);
	struct http1_event ev;

	if (piece.n)
		memcpy(copy, piece.p, piece.n);
	while (!run->over && !run->tunnel && http1_read(&run->h, &in, &ev))
		on_event(run, &ev);
	if (run->tunnel)
		run->rig->n_tunnel += in.n;
	else if (!run->over && in.n > 0)
		abort();
	free(copy);
}

void canon_rig_run(struct canon_rig *rig, struct slice in, const struct canon_where *where,
	size_t first, size_t step)
{
	struct run run = {.rig = rig, .where = where};
	struct http1_event ev;
	size_t n = first;

	run.room = ROOM(in.n);
	*rig = (struct canon_rig){.out = xmalloc(run.room)};
	arena_init(&run.arena, HTTP_ARENA_SIZE);
	arena_init(&run.far, HTTP_ARENA_SIZE);
	run.frame = xmalloc(run.room);
	run.again = xmalloc(run.room);
	run.out = wr_init(rig->out, run.room);
	run.body = wr_init(xmalloc(run.room), run.room);
	http1_init_requests(&run.h, &run.arena);
	while (in.n > 0 && !run.over) {
		size_t k = n ? MIN(n, in.n) : in.n;

		feed(&run, canon_text_cut(in, 0, k));
		in = canon_text_cut(in, k, in.n);
		n = step;
	}
	if (!run.over && http1_eof(&run.h, &ev))
		on_event(&run, &ev);
	if (run.out.bad || run.body.bad)
		abort();
	rig->n_out = run.out.n;
	free(run.body.p);
	free(run.frame);
	free(run.again);
	arena_done(&run.arena);
	arena_done(&run.far);
}

void canon_rig_done(struct canon_rig *rig)
{
	free(rig->out);
	*rig = (struct canon_rig){0};
}
