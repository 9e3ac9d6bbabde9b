/* SPDX-License-Identifier: Apache-2.0 */
/* Whole, and in pieces whose size is the first byte: both must say the same. */
#include <stdlib.h>
#include "lib/wire/tls/test/hello_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct hello *h)
{
	struct slice s;

	for (size_t at = 0; alpn_next(h, &at, &s);)
		if (s.n == 0)
			abort();
	if (h->has_name != (h->n_name > 0) || h->n_versions > HELLO_MAX_VERSIONS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	size_t step = rd_u8(&rd);
	struct hello_reader whole, pieces;

	hello_init(&whole);
	hello_init(&pieces);
	(void)hello_feed(&whole, slice_of(rd.p, rd.n));
	while (rd.n > 0)
		(void)hello_feed(&pieces, rd_bytes(&rd, MIN(step + 1, rd.n)));
	/* hello_init clears the padding of both too. */
	if (whole.state != pieces.state || whole.why != pieces.why ||
		memcmp(&whole.hello, &pieces.hello, sizeof(whole.hello)) != 0) /* NOLINT */
		abort();
	if (whole.state == HELLO_DONE)
		walk(&whole.hello);
	return 0;
}
