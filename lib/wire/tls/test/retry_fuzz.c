/* SPDX-License-Identifier: Apache-2.0 */
/* A byte for the size of pieces, two for the length of the server's part, then server and client.
 * Whole and in pieces, both must give the same result, and no byte of a ClientHello may pass. */
#include <stdlib.h>
#include "lib/wire/tls/retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct retry *r, struct slice server, struct slice client, size_t step)
{
	struct rd rd = rd_init(server);

	while (rd.n > 0)
		(void)retry_feed_server(r, rd_bytes(&rd, MIN(step, rd.n)));
	rd = rd_init(client);
	while (r->answer == RETRY_ASKED && rd.n > 0)
		(void)retry_feed_client(r, rd_bytes(&rd, MIN(step, rd.n)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	size_t step = rd_u8(&rd), n_server = rd_u16(&rd);
	struct slice server = rd_bytes(&rd, MIN(n_server, rd.n)), client = slice_of(rd.p, rd.n);
	struct retry whole, pieces;

	retry_init(&whole);
	retry_init(&pieces);
	feed(&whole, server, client, SIZE_MAX);
	feed(&pieces, server, client, step + 1);
	if (whole.answer != pieces.answer || whole.n_pass != pieces.n_pass ||
		whole.second.state != pieces.second.state || whole.second.why != pieces.second.why)
		abort();
	if (whole.n_pass > client.n || (whole.answer != RETRY_ASKED && whole.n_pass > 0))
		abort();
	if (whole.second.state == HELLO_DONE && client.p[whole.n_pass] != 22)
		abort();
	return 0;
}
