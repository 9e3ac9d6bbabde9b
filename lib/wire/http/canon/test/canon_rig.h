/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon_rig - a proxy without sockets, for tests: bytes of one connection in, what would go to
 * origins out.
 *
 * How      canon_rig_run reads requests with http1, makes them canonical, sends each through a
 *          frame and back, as edge and egress would, and writes it. The input comes whole, or cut
 *          in pieces. A body is written as one chunk, so that the pieces cannot be seen in the
 *          output.
 * Trust    Test code; never linked into a program.
 * Owns     A struct canon_rig owns its output; canon_rig_done frees it.
 * See      http1_test.c, http1_fuzz.c, tests/rigs/programs/canon_pipe.c
 */
#pragma once

#include "lib/wire/http/http1.h"

struct canon_rig {
	uint16_t status; /* of the refusal that ended the connection, 0 for none */
	const char *why;
	size_t n_requests; /* forwarded whole */
	size_t n_tunnel;   /* bytes after CONNECT or a websocket */
	uint8_t *out;
	size_t n_out;
};

/* `first` bytes come first, then `step` at a time; 0 means all that is left. */
void canon_rig_run(struct canon_rig *rig, struct slice in, const struct canon_where *where,
	size_t first, size_t step);
void canon_rig_done(struct canon_rig *rig);
/* Letters, digits, "-", "_", dots and IPv6 text; lower case. Stands for lib/rules/policy's. */
int canon_rig_host(struct slice text, char *buf, size_t size);
