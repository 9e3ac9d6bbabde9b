/* SPDX-License-Identifier: Apache-2.0 */
#include "ws.h"

#include <errno.h>

#define RSV 0x70
#define MASK 0x80

static unsigned head_size(const struct ws *w)
{
	unsigned len = w->n_head < 2 ? 0 : w->head[1] & 0x7f;

	return len == 127 ? 10 : len == 126 ? 4 : 2;
}

/* The head is complete. */
static int take_length(struct ws *w)
{
	uint64_t n = w->n_head == 2 ? w->head[1] & 0x7f : 0;

	for (unsigned i = 2; i < w->n_head; i++)
		n = n << 8 | w->head[i];
	w->n_head = 0;
	w->left = n;
	return n > INT64_MAX ? -EBADMSG : 0;
}

static int take_byte(struct ws *w, uint8_t c)
{
	w->head[w->n_head++] = c;
	if ((w->n_head == 1 && c & RSV) || (w->n_head == 2 && c & MASK))
		return -EBADMSG;
	return w->n_head >= 2 && w->n_head == head_size(w) ? take_length(w) : 0;
}

int ws_check(struct ws *w, struct slice bytes)
{
	int r = 0;

	while (r == 0 && bytes.n > 0) {
		uint64_t n = MIN(w->left, (uint64_t)bytes.n);

		if (n == 0) {
			r = take_byte(w, bytes.p[0]);
			n = 1;
		} else {
			w->left -= n;
		}
		bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	return r;
}
