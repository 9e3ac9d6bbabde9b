/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile guest and a hostile egress around the HTTP engine. The first byte selects the kind of
 * connection and how the guest's data is split; then follow records of u8 kind, u8 length, bytes.
 * Invariants: egress gets frames in order, with canonical heads and bodies of the announced length
 * (the rig aborts otherwise), one head per allowed request. The guest gets a sequence of answers
 * that our own parser accepts, one per request, whatever egress sends.
 */
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/wire/http/http1.h"
#include "proxy_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum what {
	GUEST_SAYS,
	EGRESS_SAYS,  /* raw */
	EGRESS_FRAME, /* with a valid header; the first byte is the kind */
	EGRESS_OK,    /* the right answer */
	KEEPER_YES,
	KEEPER_NO,
	GUEST_READS,
	GUEST_ENDS,
	EGRESS_ENDS,
	EGRESS_SLEEPS,
	TIME_IS_UP,
	N_WHATS,
};

static void say_frame(struct proxy_rig *r, struct slice bytes)
{
	uint8_t head[CANON_FRAME_HEADER];
	struct wr wr = wr_init(head, sizeof(head));
	struct rd rd = rd_init(bytes);
	uint8_t kind = rd_u8(&rd);

	wr_u32(&wr, (uint32_t)rd.n);
	wr_u8(&wr, kind);
	wr_u24(&wr, 1);
	proxy_rig_add(&r->to_answer, slice_of(head, wr.n));
	proxy_rig_add(&r->to_answer, slice_of(rd.p, rd.n));
}

static void play(struct proxy_rig *r, enum what what, struct slice bytes)
{
	switch (what) {
	case GUEST_SAYS:
		proxy_rig_add(&r->to_say, bytes);
		break;
	case EGRESS_SAYS:
		proxy_rig_add(&r->to_answer, bytes);
		break;
	case EGRESS_FRAME:
		say_frame(r, bytes);
		break;
	case EGRESS_OK:
		if (r->n_requests)
			proxy_rig_ok(r);
		break;
	case KEEPER_YES:
	case KEEPER_NO:
		if (r->c && r->c->asking)
			proxy_rig_verdict(r, what == KEEPER_YES);
		break;
	case GUEST_READS:
		r->reads = bytes.n ? (size_t)bytes.p[0] << 4 : SIZE_MAX;
		break;
	case GUEST_ENDS:
		r->to_end = true;
		break;
	case EGRESS_ENDS:
		r->hang_up = true;
		break;
	case EGRESS_SLEEPS:
		r->deaf = !r->deaf;
		break;
	case TIME_IS_UP:
		if (r->c && r->timer_ms)
			proxy_rig_timer(r);
		break;
	case N_WHATS:
		break;
	}
	proxy_rig_turn(r);
}

/* Limits of our parser that egress's parser does not have are not faults. */
static bool is_limit(const struct http_fault *fault)
{
	return strstr(fault->why, "too large") || strstr(fault->why, "too many");
}

/* Parses one answer from *in; false if there is no more. */
static bool read_answer(struct slice *in, const struct http_req *req)
{
	struct arena arena;
	struct http1 h;
	struct http1_event ev;
	bool whole = false;

	arena_init(&arena, HTTP_ARENA_SIZE);
	http1_init_response(&h, &arena, req);
	while (!whole && http1_read(&h, in, &ev)) {
		if (ev.kind == HTTP1_EV_ERROR && !is_limit(&ev.fault))
			abort();
		if (ev.kind == HTTP1_EV_ERROR || h.state == HTTP1_IN_TUNNEL)
			break;
		whole = ev.kind == HTTP1_EV_END;
	}
	arena_done(&arena);
	return whole;
}

static void check_answers(const struct proxy_rig *r)
{
	struct slice in = slice_of(r->got.p, r->got.n);

	for (unsigned int i = 0; in.n > 0 && i < RIG_MAX_ASKS; i++) {
		struct http_req req = {.method = slice_from_str("GET"), .websocket = true};

		if (i >= r->n_asks + r->n_faults)
			abort();
		if (i < r->n_asks && r->was_head[i])
			req.method = slice_from_str("HEAD");
		if (!read_answer(&in, &req))
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	struct proxy_rig *r = proxy_rig_new(how & 1 ? NULL : "example.test", 80);

	r->decide = how & 2 ? 0 : 1;
	r->answer = how & 4 ? proxy_rig_ok : NULL;
	r->piece = how >> 3;
	while (rd.n > 1) {
		uint8_t what = rd_u8(&rd), n = rd_u8(&rd);

		play(r, (enum what)(what % N_WHATS), rd_bytes(&rd, MIN(n, rd.n)));
	}
	if (r->n_bad > 0 || r->max_out > CONN_OUT || r->n_faults > 1)
		abort();
	check_answers(r);
	proxy_rig_free(r);
	return 0;
}
