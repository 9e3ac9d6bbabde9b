/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - one HTTP/2 connection over any byte stream: bytes in, bytes out, callbacks.
 *
 * How      The client (edge on sbx.ctl, the guest on sbx.net) opens streams by path, the server
 *          answers with a status; then
 *          each carries bytes both ways with its own window, half-close and reset. wire_feed takes
 *          what came, wire_pull gives what is to be sent. Bodies to send are pulled through
 *          ops->pull, so nothing is queued here; received bytes are handed to ops->on_data and the
 *          peer may send more only as wire_consumed is called.
 * Trust    Parses untrusted input. Runs in edge and guest. Holds no secret.
 * Owns     The nghttp2 session and a few words per stream; slots are the caller's table indexes.
 * Limits   WIRE_MAX_*, WIRE_*_WINDOW, WIRE_JUNK_*. A peer over a limit: negative errno from
 *          wire_feed or wire_pull, and from then on from every call; wire_error has the reason.
 * Never    I/O, a clock, a log line, or memory that a peer can make grow.
 * See      proto/PROTOCOL.wire, wire_test.c, wire_hostile_test.c, wire_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/slice.h"

#define WIRE_MAX_PATH 64
#define WIRE_MAX_FRAME 16384
/* sbx.ctl, with requests of the host: few streams, each fast. The window is the unconsumed bytes of
 * one stream: 2.6 ms of a 100 MB/s wire, several times its round trip. The connection's window is
 * given back on receipt, so a stream without a reader never stops the others; buffered bytes are
 * limited to streams times window. */
#define WIRE_MAX_STREAMS 256
#define WIRE_STREAM_WINDOW (256 * 1024)
/* sbx.net, with requests of the guest: a stream for each connection and DNS query. */
#define WIRE_NET_STREAMS 1280
#define WIRE_NET_WINDOW (64 * 1024)
#define WIRE_CONN_WINDOW (1024 * 1024)
/* Frames that move nothing (PING, SETTINGS, RST_STREAM, empty DATA, tiny WINDOW_UPDATE): a burst,
 * and a number a second. Connections of a guest sometimes end with a reset. */
#define WIRE_JUNK_BURST 2000
#define WIRE_JUNK_PER_S 1000
/* Frames waiting to be sent that the peer made us queue. */
#define WIRE_MAX_QUEUED 4096

enum wire_role { WIRE_CLIENT, WIRE_SERVER };
enum wire_port { WIRE_CTL, WIRE_NET };

struct wire;

/*
 * `slot` is the index the caller gave to the stream. A callback may call any wire_ function but
 * wire_feed, wire_pull and wire_free. NULL is allowed for what a role never needs.
 */
struct wire_ops {
	/* SETTINGS went both ways: the peer is alive and speaks HTTP/2. */
	void (*on_ready)(void *ctx);
	/* Server: a new stream. Gives 0 and its slot, or a negative errno: the stream is reset. */
	int (*on_open)(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot);
	/* Client: the head of the answer. */
	void (*on_reply)(void *ctx, uint32_t id, uint32_t slot, unsigned status);
	void (*on_data)(void *ctx, uint32_t id, uint32_t slot, struct slice bytes);
	/* The peer has ended its direction. */
	void (*on_end)(void *ctx, uint32_t id, uint32_t slot);
	/* The stream is over in both directions: 0, or -ECONNRESET when it was reset. The slot is
	 * free. Comes once for each stream, but not after wire_reset or wire_free. */
	void (*on_close)(void *ctx, uint32_t id, uint32_t slot, int error);
	/* Up to n bytes of the body into buf, as read(2): a count, 0 at the end (half-close),
	 * -EAGAIN when there is nothing now (call wire_resume later), else the stream is reset and
	 * on_close comes. */
	ssize_t (*pull)(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n);
	/* The answer to wire_ping. */
	void (*on_pong)(void *ctx, uint64_t cookie);
};

/* ops stay the caller's and must outlive the wire. wire_pull has bytes immediately. */
struct wire *wire_new(
	enum wire_role role, enum wire_port port, const struct wire_ops *ops, void *ctx);
void wire_free(struct wire *w);

/* Takes all the bytes. now_ms is any clock that does not go back; it only meters junk. 0, -EPROTO
 * when the peer broke the protocol or a limit, -ECONNRESET if it sent GOAWAY. */
int wire_feed(struct wire *w, struct slice bytes, uint64_t now_ms) MUST_CHECK;
/* Up to n bytes to send: a count, 0 when there is nothing now, or a negative errno. */
ssize_t wire_pull(struct wire *w, uint8_t *buf, size_t n) MUST_CHECK;
bool wire_wants_write(const struct wire *w);
/* Why it is broken, "" while it is not. */
const char *wire_error(const struct wire *w);

/* Client: POST path. -EBUSY with as many streams open as the port has, -EINVAL for a bad path,
 * -EPIPE when the ids of this connection are used up or it is broken. */
int wire_open(struct wire *w, const char *path, uint32_t slot, uint32_t *ret_id) MUST_CHECK;
/* Server: the head of the answer; ops->pull then provides the body. */
int wire_reply(struct wire *w, uint32_t id, unsigned status) MUST_CHECK;
/* ops->pull has something again (or the end). */
void wire_resume(struct wire *w, uint32_t id);
/* n bytes given to on_data were consumed: the peer may send as many again. */
void wire_consumed(struct wire *w, uint32_t id, size_t n);
/* Ends the stream at once in both directions; no callback for it comes any more. */
void wire_reset(struct wire *w, uint32_t id);
int wire_ping(struct wire *w, uint64_t cookie) MUST_CHECK;
/* The peer has spoken but not answered us yet. */
bool wire_is_opening(const struct wire *w);
/* Streams that are open. */
unsigned wire_n_streams(const struct wire *w);
