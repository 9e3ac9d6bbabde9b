/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws - frames of a WebSocket as a server sends them: what was never agreed on is refused.
 *
 * How      ws_check goes through the bytes as they come, from the first one behind the 101, and
 *          keeps only where it is in a frame. A frame is refused when it is masked (only clients
 *          mask), when it has one of the bits RSV1 to RSV3 (extensions, which are never offered),
 *          or a length that is too long.
 * Trust    Eats bytes of a server that may be hostile, in sbx-origin.
 * Never    Looks into the payload, or at the order of frames. Does no I/O.
 * See      RFC 6455 section 5.2, ws_test.c, ws_fuzz.c
 */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/slice.h"

struct ws {
	uint8_t head[10];
	unsigned n_head; /* of them that have come */
	uint64_t left;	 /* bytes of the payload that are still to come */
};

/* 0, or -EBADMSG; then the WebSocket is over. Zero is the state of a new one. */
int ws_check(struct ws *w, struct slice bytes) MUST_CHECK;
