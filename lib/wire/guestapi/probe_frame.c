/* SPDX-License-Identifier: Apache-2.0 */
#include "probe_frame.h"

#include <errno.h>

int probe_ask_put(uint8_t buf[PROBE_FRAME_ASK], const struct probe_ask *ask)
{
	struct wr wr = wr_init(buf, PROBE_FRAME_ASK);

	if (ask->n_script > PROBE_FRAME_MAX_SCRIPT)
		return -EMSGSIZE;
	wr_u32(&wr, ask->number);
	wr_u32(&wr, ask->seconds);
	wr_u32(&wr, ask->n_script);
	return wr_finish(&wr);
}

int probe_ask_get(const uint8_t buf[PROBE_FRAME_ASK], struct probe_ask *ret)
{
	struct rd rd = rd_init(slice_of(buf, PROBE_FRAME_ASK));

	ret->number = rd_u32(&rd);
	ret->seconds = rd_u32(&rd);
	ret->n_script = rd_u32(&rd);
	return ret->n_script > PROBE_FRAME_MAX_SCRIPT ? -EBADMSG : rd_finish(&rd);
}

int probe_answer_put(uint8_t buf[PROBE_FRAME_HEAD], uint32_t number, uint32_t status, size_t n_out)
{
	struct wr wr = wr_init(buf, PROBE_FRAME_HEAD);

	if (n_out > PROBE_FRAME_MAX_OUT)
		return -EMSGSIZE;
	wr_u32(&wr, PROBE_FRAME_MARK);
	wr_u32(&wr, number);
	wr_u32(&wr, status);
	wr_u32(&wr, (uint32_t)n_out);
	return wr_finish(&wr);
}

/* Up to `want` bytes in all; true if they are complete. */
static bool collect_frame(struct probe_reader *r, struct slice *in, size_t want)
{
	size_t n = MIN(want - r->n, in->n);

	if (n > 0)
		memcpy(r->buf + r->n, in->p, n);
	r->n += n;
	*in = slice_of(in->p + n, in->n - n);
	return r->n == want;
}

int probe_reader_feed(struct probe_reader *r, struct slice *in, struct probe_answer *ret)
{
	struct rd rd = rd_init(slice_of(r->buf, PROBE_FRAME_HEAD));
	uint32_t mark, n;

	if (r->full)
		r->n = 0;
	r->full = false;
	if (r->bad)
		return -EBADMSG;
	if (r->n < PROBE_FRAME_HEAD && !collect_frame(r, in, PROBE_FRAME_HEAD))
		return 0;
	mark = rd_u32(&rd);
	ret->number = rd_u32(&rd);
	ret->status = rd_u32(&rd);
	n = rd_u32(&rd);
	r->bad = mark != PROBE_FRAME_MARK || n > PROBE_FRAME_MAX_OUT;
	if (r->bad)
		return -EBADMSG;
	if (!collect_frame(r, in, PROBE_FRAME_HEAD + n))
		return 0;
	r->full = true;
	ret->out = slice_of(r->buf + PROBE_FRAME_HEAD, n);
	return 1;
}
