/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte: whether there is a login (1 bit), and the size of the pieces. The rest is what
 * the proxy sends. It must end in an open connection or in a fault with a reason, and take no byte
 * of the server.
 */
#include <stdlib.h>
#include "lib/wire/socks/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data, size), how = slice_take(&rest, 1);
	enum socks_next next = SOCKS_READ;
	size_t step, n_asked = 0;
	struct socks s;

	if (how.n == 0)
		return 0;
	socks_init(&s, how.p[0] & 1);
	step = 1 + (how.p[0] >> 1);
	while (rest.n && socks_want(&s)) {
		struct slice piece =
			slice_take(&rest, step < socks_want(&s) ? step : socks_want(&s));

		next = socks_take(&s, piece);
		n_asked += next == SOCKS_REQUEST;
		must(s.n <= s.want && s.want <= SOCKS_MAX_REPLY);
		must(next != SOCKS_LOGIN || how.p[0] & 1);
	}
	must((socks_want(&s) == 0) == (next == SOCKS_OPEN || next == SOCKS_FAILED));
	must((s.fault != SOCKS_NO_FAULT) == (next == SOCKS_FAILED) && !s.fault == !s.why);
	must(next != SOCKS_OPEN || n_asked == 1);
	return 0;
}
