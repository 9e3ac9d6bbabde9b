/* SPDX-License-Identifier: Apache-2.0 */
/* A byte for the size of pieces, then the bytes of a peer. Whole and in pieces they must give the
 * same streams, and no stream may hold more than its window. */
#include <stdlib.h>
#include "lib/wire/mux/mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(struct mux *m, struct slice bytes, size_t step)
{
	int r = 0;

	for (uint32_t id = 1; id < 8; id++)
		(void)mux_open(m, id);
	while (bytes.n && r >= 0) {
		struct slice in = slice_of(bytes.p, bytes.n < step ? bytes.n : step);

		bytes = slice_of(bytes.p + in.n, bytes.n - in.n);
		while ((r = mux_feed(m, &in)) == 1)
			;
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mux whole = {0}, pieces = {0};
	size_t step = size ? data[0] % 64 + 1U : 1;
	struct slice bytes = slice_of(data + !!size, size - !!size);

	if (feed(&whole, bytes, SIZE_MAX) != feed(&pieces, bytes, step))
		abort();
	for (uint32_t id = 1; id < 8; id++) {
		struct mux_stream *a = mux_find(&whole, id), *b = mux_find(&pieces, id);

		if (a->in_n > a->window || a->credit > MUX_MAX_WINDOW)
			abort();
		if (!slice_eq(mux_peek(a), mux_peek(b)) || a->in_end != b->in_end ||
			a->is_gone != b->is_gone || a->credit != b->credit)
			abort();
		mux_take(a, a->in_n);
	}
	mux_done(&whole);
	mux_done(&pieces);
	return 0;
}
