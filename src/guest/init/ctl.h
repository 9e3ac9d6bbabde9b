/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl - the small requests: reads a body, replies, and closes the stream.
 *
 * How      The handler of a path runs when the body is complete and fills in the answer.
 * Trust    The host's requests, decoded by lib/wire/guestapi/guest_ctl.h.
 * Owns     The bodies of the open streams.
 * Limits   CTL_MAX_STREAMS at the same time, GUEST_MAX_BODY bytes in each direction.
 */
#pragma once

#include <sys/types.h>
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/wire/wire/wire.h"

#define CTL_MAX_STREAMS 16

/* Returns the HTTP status; writes the answer's body. With CTL_HOLD the answer waits for
 * ctl_release. */
#define CTL_HOLD 0x8000u
typedef unsigned ctl_handler(void *ctx, struct slice body, struct wr *answer);

struct ctl_route {
	const char *path;
	ctl_handler *handle;
};

struct ctl_stream {
	const struct ctl_route *route; /* NULL when the slot is free */
	bool answered;
	unsigned held; /* status of a held answer; 0: none */
	uint32_t id;   /* stream, for that */
	size_t n, at;  /* bytes collected; then bytes of the answer and bytes sent */
	uint8_t *body;
};

struct ctl {
	const struct ctl_route *routes; /* ends with a NULL path */
	void *ctx;
	struct wire *wire;
	struct ctl_stream streams[CTL_MAX_STREAMS];
};

/* Returns -ENOENT for an unknown path, -EBUSY if there are too many. */
int ctl_open(struct ctl *c, const char *path, uint32_t *ret_idx) MUST_CHECK;
/* -EMSGSIZE: the caller resets the stream. */
int ctl_on_data(struct ctl *c, uint32_t id, uint32_t idx, struct slice bytes) MUST_CHECK;
void ctl_on_end(struct ctl *c, uint32_t id, uint32_t idx);
ssize_t ctl_pull(struct ctl *c, uint32_t idx, uint8_t *buf, size_t n);
void ctl_close(struct ctl *c, uint32_t idx);
/* Sends held answers of a path; with this body, if given. */
void ctl_release(struct ctl *c, const char *path, struct slice body);
/* The session has ended, and with it all streams. */
void ctl_drop_all(struct ctl *c);
