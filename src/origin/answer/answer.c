/* SPDX-License-Identifier: Apache-2.0 */
/* The answer as frames for edge: checked once more, so that it cannot contain a second answer. */
#include "answer.h"

#include <errno.h>

int answer_put_head(struct exchange *x, struct http_resp *resp)
{
	struct wr wr = out_wr(&x->to_edge, CANON_MAX_HEAD + CANON_FRAME_HEADER);

	if (canon_flow_resp(&x->talk->down, resp) < 0 || canon_put_resp(&wr, OUT_STREAM, resp) < 0)
		return -EBADMSG;
	out_put_wr(&x->to_edge, &wr);
	x->talk->is_said = x->talk->is_said || resp->status >= 200 || resp->status == 101;
	return 0;
}

int answer_put_data(struct exchange *x, struct slice data)
{
	while (data.n) {
		size_t n = MIN(data.n, CANON_MAX_DATA);
		struct wr wr = out_wr(&x->to_edge, n + CANON_FRAME_HEADER);

		if (canon_flow_data(&x->talk->down, n) < 0 ||
			canon_put_data_head(&wr, OUT_STREAM, n) < 0)
			return -EBADMSG;
		wr_bytes(&wr, slice_of(data.p, n));
		if (wr_finish(&wr) < 0)
			return -EBADMSG;
		out_put_wr(&x->to_edge, &wr);
		data = slice_of(data.p + n, data.n - n);
	}
	return 0;
}

int answer_put_end(struct exchange *x, struct http_headers *trailers)
{
	struct wr wr = out_wr(&x->to_edge, CANON_MAX_END + CANON_FRAME_HEADER);

	if (canon_flow_end(&x->talk->down, trailers) < 0 ||
		canon_put_end(&wr, OUT_STREAM, trailers) < 0)
		return -EBADMSG;
	out_put_wr(&x->to_edge, &wr);
	x->talk->is_done = true;
	return 0;
}
