/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a WebSocket's server, whole and cut at the place that the first byte says: the
 * verdict is the same, and what was accepted has no mask and no bit of an extension, as read in
 * another way. */
#include "lib/wire/http/ws.h"

#include <stdbool.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Whether all heads that are there are good; frame by frame. */
static bool is_good(struct slice s)
{
	size_t at = 0;

	while (at < s.n) {
		size_t size = 2, more = 0;
		uint64_t len = 0;

		if (s.p[at] >> 4 & 7)
			return false;
		if (at + 1 == s.n)
			return true;
		if (s.p[at + 1] >= 128)
			return false;
		len = s.p[at + 1];
		more = len == 126 ? 2 : len == 127 ? 8 : 0;
		if (at + size + more > s.n)
			return true;
		for (size_t i = 0; i < more; i++)
			len = (i ? len << 8 : 0) | s.p[at + size + i];
		if (len >> 63)
			return false;
		if (len > s.n - at - size - more)
			return true;
		at += size + more + len;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ws whole = {0}, cut = {0};
	size_t at = n ? p[0] % n : 0;
	struct slice all = n ? slice_of(p + 1, n - 1) : slice_of(p, 0);
	int r = ws_check(&whole, all), r2;

	at = at < all.n ? at : all.n;
	r2 = ws_check(&cut, slice_of(all.p, at));
	if (r2 == 0)
		r2 = ws_check(&cut, slice_of(all.p + at, all.n - at));
	if (r != r2 || (r == 0) != is_good(all))
		__builtin_trap();
	return 0;
}
