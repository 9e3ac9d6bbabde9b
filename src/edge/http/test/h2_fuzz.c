/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile guest inside intercepted TLS, in any order with verdicts, answers of the origin and a
 * guest that does not read. The rig checks what reaches the origin: complete frames, in order, of
 * the announced length. Input: u8 mode (1: verdicts by hand, 2: some denials), then steps: u8 kind,
 * u16 length + bytes. */
#include "h2_rig.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step { RAW, FRAME, YES, NO, ORIGIN, OK_ALL, CLOSE, READS, TIME, N_STEPS };

static void answer(struct rig_way *w)
{
	if (w->fd < 0 || !w->method[0] || w->n_said)
		return;
	rig_way_head(w, 200, HTTP_BODY_CHUNKED, 0, "x", "y");
	w->n_said = 1;
	w->to_end = true;
	w->tail = "0";
}

static void fire_timer(struct h2_rig *r, size_t idx)
{
	struct conn *c = r->e.net->conns[idx % NET_MAX_CONNS];

	if (c && c->timer.pos) {
		struct loop_key key = c->timer.key;

		loop_timer_clear(&r->e.loop, &c->timer);
		net_on_timer(&r->e, key);
	}
}

static void step(struct h2_rig *r, enum step what, struct slice s)
{
	uint8_t k = s.n ? s.p[0] : 0;
	struct rig_way *w = &r->ways[k % RIG_STREAMS];
	struct slice rest = canon_text_cut(s, 1, s.n);

	switch (what) {
	case RAW:
		h2_rig_raw(r, s);
		break;
	case FRAME: /* type, flags, stream, payload */
		if (s.n >= 3)
			h2_rig_frame(r, s.p[0], s.p[1], s.p[2], canon_text_cut(s, 3, s.n));
		break;
	case YES:
	case NO:
		if (r->n_asks)
			h2_rig_verdict(r, k % r->n_asks,
				what == YES && !r->asks[k % r->n_asks].ask.fault[0]);
		break;
	case ORIGIN:
		if (w->fd >= 0)
			rig_way_bytes(w, rest);
		break;
	case OK_ALL:
		for (unsigned i = 0; i < RIG_STREAMS; i++)
			answer(&r->ways[i]);
		break;
	case CLOSE:
		rig_way_close(w);
		break;
	case READS:
		r->reads = s.n ? (size_t)k * 16 : SIZE_MAX;
		break;
	case TIME:
		fire_timer(r, k);
		break;
	case N_STEPS:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	struct h2_rig *r = h2_rig_new(false);

	r->decide = how & 1 ? 0 : how & 2 ? 2 : 1;
	h2_rig_preface(r);
	h2_rig_turn(r);
	while (rd.n > 0 && !rd.bad) {
		enum step what = rd_u8(&rd) % N_STEPS;
		size_t n = rd_u16(&rd);

		step(r, what, rd_bytes(&rd, MIN(n, rd.n)));
		h2_rig_turn(r);
		if (r->most_held > (size_t)2 * 65536 * (H2_MAX_STREAMS + 1))
			abort();
	}
	h2_rig_free(r);
	return 0;
}
