/* SPDX-License-Identifier: Apache-2.0 */
/* The first two bytes are a coding and a size, the rest a stream: whole and in pieces must come
 * to the same end, with the same bytes. */
#include <stdlib.h>
#include "lib/secret/scrub/unpack.h"

#define MAX_OUT (1U << 20) /* a bomb goes on for longer than a fuzzer should */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
	int r;
	size_t n;
	uint64_t hash;
};

static struct end run(enum unpack_coding coding, struct slice in, size_t step, size_t room)
{
	struct unpack *u = unpack_new(coding);
	struct end end = {.hash = 1469598103934665603U};
	uint8_t out[1024];

	if (!u)
		abort();
	for (size_t at = 0; at < in.n && end.r == 0 && end.n < MAX_OUT;) {
		struct slice piece = slice_of(in.p + at, MIN(step, in.n - at));
		size_t n = 1;

		at += piece.n;
		while (end.r == 0 && end.n < MAX_OUT && (piece.n > 0 || n > 0)) {
			n = 0;
			end.r = unpack_feed(u, &piece, out, room, &n, NULL);
			for (size_t i = 0; end.r == 0 && i < n; i++)
				end.hash = (end.hash ^ out[i]) * 1099511628211U;
			end.n += end.r == 0 ? n : 0;
		}
	}
	if (end.r == 0 && end.n < MAX_OUT)
		end.r = unpack_end(u, NULL);
	unpack_free(u);
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	enum unpack_coding coding = rd_u8(&rd) % UNPACK_N_CODINGS;
	size_t step = rd_u8(&rd);

	if (rd.bad)
		return 0;
	struct end whole = run(coding, slice_of(rd.p, rd.n), rd.n + 1, 1024);
	struct end pieces = run(coding, slice_of(rd.p, rd.n), step % 16 + 1, step / 16 * 60 + 1);

	if (whole.n >= MAX_OUT || pieces.n >= MAX_OUT)
		return 0;
	/* How much of a broken stream comes out before the error is the library's to choose. */
	if (whole.r != pieces.r ||
		(whole.r == 0 && (whole.n != pieces.n || whole.hash != pieces.hash)))
		abort();
	return 0;
}
