/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_pipe - the output of edge's HTTP engine, for scripts: as tests/rigs/programs/canon_pipe.c,
 * but through the whole engine, to an egress that allows everything.
 *
 * How      In: u32 length, u8 mode (0 proxy connection, 1 transparent to example.test:80), bytes of
 *          one connection. Out: u16 status of the denial (0 none), u32 requests forwarded, u32
 *          bytes after CONNECT or a websocket, u32 length, the forwarded bytes. Each input is fed
 *          at once and byte by byte; if the results differ, the program aborts.
 * Trust    Test program; reads hostile bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "proxy_rig.h"

#define MAX_INPUT (1 << 20)

/* Only edge's own answers are not 200 or 101. */
static uint16_t refusal(const struct proxy_rig *r)
{
	const char *at = r->got.p ? (const char *)r->got.p : "";
	unsigned long status = 0;

	for (const char *p = strstr(at, "HTTP/1.1 "); p; p = strstr(p + 1, "HTTP/1.1 ")) {
		unsigned long v = strtoul(p + 9, NULL, 10);

		status = v ? v : status; /* the words may also occur in a text */
	}
	return (uint16_t)(status >= 400 ? status : 0);
}

/* A head that leads to conn_connect ends here; egress would get this request. */
static void add_connect(struct proxy_rig *r)
{
	char text[600];

	(void)snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.1\r\nhost: %s:%u\r\n\r\n",
		r->connect_host.name, r->connect_port, r->connect_host.name, r->connect_port);
	r->seen.n = r->n_whole;
	proxy_rig_add(&r->seen, slice_from_str(text));
	r->n_whole = r->seen.n;
	r->n_requests++;
}

static struct proxy_rig *run(struct slice in, bool proxy, size_t piece)
{
	struct proxy_rig *r = proxy_rig_new(proxy ? NULL : "example.test", 80);

	r->answer = proxy_rig_ok;
	r->piece = piece;
	r->to_end = true;
	proxy_rig_add(&r->to_say, in);
	proxy_rig_turn(r);
	if (r->end == RIG_OPEN && !r->raw)
		abort();
	if (r->end == RIG_CONNECT)
		add_connect(r);
	return r;
}

static void answer(struct slice in, bool proxy)
{
	struct proxy_rig *whole = run(in, proxy, 0), *bytes = run(in, proxy, 1);
	uint8_t head[14];
	struct wr wr = wr_init(head, sizeof(head));

	if (refusal(whole) != refusal(bytes) || whole->n_requests != bytes->n_requests ||
		whole->n_raw != bytes->n_raw ||
		!slice_eq(slice_of(whole->seen.p, whole->n_whole),
			slice_of(bytes->seen.p, bytes->n_whole)))
		abort();
	wr_u16(&wr, refusal(whole));
	wr_u32(&wr, (uint32_t)whole->n_requests);
	wr_u32(&wr, (uint32_t)whole->n_raw);
	wr_u32(&wr, (uint32_t)whole->n_whole);
	(void)!fwrite(head, 1, wr.n, stdout);
	if (whole->n_whole)
		(void)!fwrite(whole->seen.p, 1, whole->n_whole, stdout);
	fflush(stdout);
	proxy_rig_free(whole);
	proxy_rig_free(bytes);
}

int main(void)
{
	uint8_t head[5];

	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		struct rd rd = rd_init(slice_of(head, sizeof(head)));
		uint32_t n = rd_u32(&rd);
		uint8_t mode = rd_u8(&rd);
		AUTO_FREE uint8_t *in = NULL;

		if (n > MAX_INPUT || mode > 1)
			return 1;
		in = xmalloc(n + 1);
		if (fread(in, 1, n, stdin) != n)
			return 1;
		answer(slice_of(in, n), mode == 0);
	}
	return 0;
}
