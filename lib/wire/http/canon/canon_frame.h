/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon_frame - canonical messages between edge and egress: frames of one byte stream, both ways.
 *
 * How      A struct canon_reader reads bytes and returns complete frames, DATA in pieces without a
 *          copy. canon_get_* decode strictly: a field that canon_check_req would not pass, a wrong
 *          length or an extra byte, and the peer is dropped. A struct canon_flow follows one
 *          direction of one stream: the order of frames, and that the body has the length of the
 *          head, because an extra byte would be a second request to an origin.
 * Trust    Egress does not trust edge, and edge not egress. Holds no secret.
 * Owns     A reader owns its collecting buffer, made on first need; canon_reader_done frees it.
 * Limits   CANON_MAX_DATA, CANON_MAX_HEAD, CANON_MAX_END bytes of payload.
 * Never    I/O. A reader that has failed stays failed.
 * See      proto/PROTOCOL.canon, canon_frame_test.c, canon_fuzz.c
 */
#pragma once

#include "canon.h"

#define CANON_FRAME_HEADER 8
#define CANON_MAX_DATA 65536
#define CANON_MAX_HEAD (2 * HTTP_MAX_HEAD + 4096)
#define CANON_MAX_END (HTTP_MAX_TRAILER_BYTES + 256)
#define CANON_MAX_STREAM 0xffffff

enum canon_kind {
	CANON_HEAD = 1,
	CANON_DATA = 2,
	CANON_END = 3,
	CANON_RESET = 4,
	CANON_N_KINDS,
};

struct canon_frame {
	enum canon_kind kind;
	uint32_t stream;
	struct slice
		payload; /* of DATA: as much as has come; valid until the reader is fed again */
};

struct canon_reader {
	uint8_t head[CANON_FRAME_HEADER];
	size_t n_head;
	uint8_t *buf;
	size_t n_buf, want;
	bool bad;
};

void canon_reader_init(struct canon_reader *rd);
void canon_reader_done(struct canon_reader *rd);
/* Reads from the front of *in. 1 with a frame (call again), 0 when *in is used up, -EBADMSG on any
 * violation and from then on always. */
int canon_reader_feed(
	struct canon_reader *rd, struct slice *in, struct canon_frame *ret) MUST_CHECK;
/* Bytes of the DATA frame under way that are still to come; 0 outside of one. */
size_t canon_reader_data_left(const struct canon_reader *rd);
/* The next n of them went past the reader, from the socket to where they belong. Not more than are
 * left. */
void canon_reader_pass_data(struct canon_reader *rd, size_t n);

/* Whole frames. -EINVAL when the message is not canonical, -EMSGSIZE when it does not fit. */
int canon_put_req(struct wr *wr, uint32_t stream, const struct http_req *req) MUST_CHECK;
int canon_put_resp(struct wr *wr, uint32_t stream, const struct http_resp *resp) MUST_CHECK;
/* Trailers may be NULL. */
int canon_put_end(struct wr *wr, uint32_t stream, const struct http_headers *trailers) MUST_CHECK;
int canon_put_reset(struct wr *wr, uint32_t stream, uint8_t code) MUST_CHECK;
/* The 8 bytes in front of n bytes of data, 1 to CANON_MAX_DATA. */
int canon_put_data_head(struct wr *wr, uint32_t stream, size_t n) MUST_CHECK;

/* Payloads. Text points into the payload, lists are in the arena. -EBADMSG on any violation, and
 * nothing may be used then. */
int canon_get_req(struct slice payload, struct arena *arena, struct http_req *ret) MUST_CHECK;
int canon_get_resp(struct slice payload, struct arena *arena, struct http_resp *ret) MUST_CHECK;
int canon_get_end(struct slice payload, struct arena *arena, struct http_headers *ret) MUST_CHECK;

enum canon_phase { CANON_BEFORE_HEAD, CANON_IN_BODY, CANON_OVER };

struct canon_flow {
	enum canon_phase phase;
	enum http_body_kind kind;
	uint64_t left;
	bool may_switch;
};

/* All zero is the start. Each returns -EBADMSG if the frame is not allowed now. */
int canon_flow_req(struct canon_flow *f, const struct http_req *req) MUST_CHECK;
/* Informational heads may come before the answer. */
int canon_flow_resp(struct canon_flow *f, const struct http_resp *resp) MUST_CHECK;
int canon_flow_data(struct canon_flow *f, size_t n) MUST_CHECK;
int canon_flow_end(struct canon_flow *f, const struct http_headers *trailers) MUST_CHECK;
/* The websocket was accepted: from here the request's direction is a tunnel. */
int canon_flow_switch(struct canon_flow *f) MUST_CHECK;
