/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws - checks WebSocket frames of a server: what was not negotiated is rejected.
 *
 * How      ws_check reads the bytes as they come, from the first one after the 101, and keeps only
 *          its position in a frame. A frame is refused when it is masked (only clients mask), when
 *          it has one of the bits RSV1 to RSV3 (extensions, which are never offered), or a length
 *          that is too long.
 * Trust    Input: untrusted bytes of a server. Runs in sbx-origin.
 * Never    Parses the payload, or checks the order of frames. Does no I/O.
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
