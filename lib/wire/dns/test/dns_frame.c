/* SPDX-License-Identifier: Apache-2.0 */
#include "dns_frame.h"

#include <errno.h>

void dns_frame_init(struct dns_frame *f)
{
	f->n_head = 0;
	f->n_buf = 0;
	f->bad = false;
}

static struct slice take_front(struct slice *in, size_t n)
{
	struct rd rd = rd_init(*in);
	struct slice s = rd_bytes(&rd, MIN(n, in->n));

	*in = slice_of(rd.p, rd.n);
	return s;
}

static bool collect_head(struct dns_frame *f, struct slice *in)
{
	struct slice s = take_front(in, sizeof(f->head) - f->n_head);

	if (s.n > 0)
		memcpy(&f->head[f->n_head], s.p, s.n);
	f->n_head += (uint8_t)s.n;
	return f->n_head == sizeof(f->head);
}

static bool collect_body(struct dns_frame *f, size_t want, struct slice *in, struct slice *ret)
{
	struct slice s = take_front(in, want - f->n_buf);

	if (f->n_buf == 0 && s.n == want) {
		*ret = s;
		return true;
	}
	if (s.n > 0)
		memcpy(&f->buf[f->n_buf], s.p, s.n);
	f->n_buf += (uint16_t)s.n;
	*ret = slice_of(f->buf, f->n_buf);
	return f->n_buf == want;
}

int dns_frame_feed(struct dns_frame *f, struct slice *in, struct slice *ret_msg)
{
	struct slice msg;
	size_t want;

	if (f->bad)
		return -EBADMSG;
	if (!collect_head(f, in))
		return 0;
	want = (size_t)f->head[0] << 8 | f->head[1];
	if (want == 0 || want > DNS_MAX_QUERY) {
		f->bad = true;
		return -EBADMSG;
	}
	if (!collect_body(f, want, in, &msg))
		return 0;
	f->n_head = 0;
	f->n_buf = 0;
	*ret_msg = msg;
	return 1;
}

void dns_frame_head(uint8_t head[2], uint16_t n)
{
	head[0] = (uint8_t)(n >> 8);
	head[1] = (uint8_t)n;
}
