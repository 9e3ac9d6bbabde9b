/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_internal - what wire.c (the calls) and wire_recv.c (nghttp2's callbacks) share.
 *
 * See      wire.h
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include "lib/base/bucket.h"
#include "wire.h"

struct wire_stream {
	uint32_t id, slot;
	uint32_t held; /* received and not consumed */
	bool gone;     /* reset by us: nothing is reported any more */
	struct wire_stream *prev, *next;
};

/* The header block being read; a connection has one at a time. */
struct wire_head {
	unsigned status;
	unsigned seen; /* bits of enum head_field */
	char path[WIRE_MAX_PATH];
};

struct wire {
	enum wire_role role;
	unsigned max_streams;
	uint32_t window; /* of a stream, for what the peer sends */
	const struct wire_ops *ops;
	void *ctx;
	nghttp2_session *session;
	struct wire_stream *streams;
	unsigned n_streams;
	struct wire_head head;
	unsigned preface; /* server: how many bytes of the client's magic have come */
	bool got_settings, got_ack, ready;
	struct bucket junk;
	uint64_t now_ms;
	const uint8_t *out; /* what nghttp2 gave and was not pulled yet */
	size_t n_out;
	int broken;
	char why[128];
};

/* Marks the connection broken (the first reason stays) and gives r. */
int wire_fail(struct wire *w, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct wire_stream *wire_stream_new(struct wire *w, uint32_t id, uint32_t slot);
void wire_stream_free(struct wire *w, struct wire_stream *s);
struct wire_stream *wire_stream_find(struct wire *w, uint32_t id);
void wire_set_callbacks(nghttp2_session_callbacks *cbs);
