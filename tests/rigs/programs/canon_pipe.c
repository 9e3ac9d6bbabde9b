/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon_pipe - what the proxy would forward, for scripts: records on stdin, records on stdout.
 *
 * How      In: u32 length, u8 mode (0 proxy connection, 1 transparent to example.test:80), bytes of
 *          one connection. Out: u16 status of the refusal (0 none), u32 requests forwarded, u32
 *          bytes behind CONNECT or a websocket, u32 length, the forwarded bytes. Each input is read
 *          whole and byte by byte; when the two differ, the program aborts.
 * Trust    Test program; reads hostile bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/wire/http/canon/test/canon_rig.h"

#define MAX_INPUT (1 << 20)

static const struct canon_where modes[] = {
	{.scheme = HTTP_SCHEME_HTTP, .canonical_host = canon_rig_host},
	{
		.scheme = HTTP_SCHEME_HTTP,
		.canonical_host = canon_rig_host,
		.target = {.given = true,
			.host = {(const uint8_t *)"example.test", 12},
			.port = 80},
	},
};

static void answer(struct slice in, const struct canon_where *where)
{
	uint8_t head[14];
	struct wr wr = wr_init(head, sizeof(head));
	struct canon_rig whole, bytes;

	canon_rig_run(&whole, in, where, 0, 0);
	canon_rig_run(&bytes, in, where, 1, 1);
	if (whole.status != bytes.status || whole.n_requests != bytes.n_requests ||
		!slice_eq(slice_of(whole.out, whole.n_out), slice_of(bytes.out, bytes.n_out)))
		abort();
	wr_u16(&wr, whole.status);
	wr_u32(&wr, (uint32_t)whole.n_requests);
	wr_u32(&wr, (uint32_t)whole.n_tunnel);
	wr_u32(&wr, (uint32_t)whole.n_out);
	(void)!fwrite(head, 1, wr.n, stdout);
	(void)!fwrite(whole.out, 1, whole.n_out, stdout);
	fflush(stdout);
	canon_rig_done(&whole);
	canon_rig_done(&bytes);
}

int main(void)
{
	uint8_t head[5];

	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		struct rd rd = rd_init(slice_of(head, sizeof(head)));
		uint32_t n = rd_u32(&rd);
		uint8_t mode = rd_u8(&rd);
		AUTO_FREE uint8_t *in = NULL;

		if (n > MAX_INPUT || mode >= ARRAY_LEN(modes))
			return 1;
		in = xmalloc(n);
		if (fread(in, 1, n, stdin) != n)
			return 1;
		answer(slice_of(in, n), &modes[mode]);
	}
	return 0;
}
