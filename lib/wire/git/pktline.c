/* SPDX-License-Identifier: Apache-2.0 */
#include "pktline.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include "lib/base/hex.h"

#define HEAD 4

void pktline_init(struct pktline_reader *r)
{
	r->n = 0;
	r->bad = false;
}

/* -1 unless four digits. */
static int length_of(const uint8_t *p)
{
	int n = 0;

	for (int i = 0; i < HEAD; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return -1;
		n = n * 16 + digit;
	}
	return n;
}

static void take_upto(struct pktline_reader *r, struct slice *in, uint32_t upto)
{
	struct slice s = slice_take(in, upto - r->n);

	if (s.n > 0)
		memcpy(r->buf + r->n, s.p, s.n);
	r->n += (uint32_t)s.n;
}

int pktline_read(struct pktline_reader *r, struct slice *in, struct slice *ret)
{
	int n;

	if (r->bad)
		return -EBADMSG;
	if (r->n < HEAD)
		take_upto(r, in, HEAD);
	if (r->n < HEAD)
		return PKTLINE_MORE;
	n = length_of(r->buf);
	r->bad = n < 0 || n > PKTLINE_MAX || n == 3;
	if (r->bad)
		return -EBADMSG;
	if (n < HEAD) {
		r->n = 0;
		return n;
	}
	take_upto(r, in, (uint32_t)n);
	if (r->n < (uint32_t)n)
		return PKTLINE_MORE;
	*ret = slice_of(r->buf + HEAD, (size_t)n - HEAD);
	r->n = 0;
	return PKTLINE_DATA;
}

static void put_length(pktline_out *out, void *arg, size_t n)
{
	char head[HEAD + 1];

	assert(n <= PKTLINE_MAX);
	(void)snprintf(head, sizeof(head), "%04zx", n & 0xffff);
	out(arg, slice_of(head, HEAD));
}

void pktline_put(pktline_out *out, void *arg, struct slice data)
{
	put_length(out, arg, HEAD + data.n);
	out(arg, data);
}

void pktline_mark(pktline_out *out, void *arg, enum pktline_event mark)
{
	put_length(out, arg, mark);
}

void pktline_band(pktline_out *out, void *arg, uint8_t band, struct slice data)
{
	put_length(out, arg, HEAD + 1 + data.n);
	out(arg, slice_of(&band, 1));
	out(arg, data);
}
