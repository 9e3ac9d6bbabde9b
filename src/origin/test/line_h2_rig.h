/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_h2_rig - for line_h2_test.c: an HTTP/2 server in a separate process, at the end of a rig's
 * socket.
 *
 * How      h2_rig_serve answers a WANT and forks. The child does TLS and serves by path: /echo
 *          sends data back immediately; /dump sends the received fields; /big?N sends N bytes;
 *          /sink counts; line_h2_rig.c lists the others. h2_rig_attack does the same with a script
 *          of raw frames instead of nghttp2.
 * Trust    Test program.
 */
#pragma once

#include "origin_rig.h"

/* Deviations of a server; zero is a normal one. */
struct h2_rig_manner {
	uint32_t max_streams; /* 0: 1,000 */
	unsigned n_refused;   /* number of requests to refuse */
	unsigned goaway_at;   /* at the n-th request: GOAWAY that excludes this and later ones */
	bool is_slow;	      /* reads little at a time */
};

pid_t h2_rig_serve(struct rig *r, const struct h2_rig_manner *manner);
/* The script writes to the line after both SETTINGS; `stream` is the first request's. */
typedef void (*h2_rig_script)(SSL *ssl, uint32_t stream);
pid_t h2_rig_attack(struct rig *r, h2_rig_script script);
/* Sends one raw frame; false if the line is closed. */
bool h2_rig_frame(SSL *ssl, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n);
/* Reads the next frame of origin and drops its payload. False if the line is closed. */
struct h2_rig_head {
	uint8_t type, flags;
	uint32_t stream;
};
bool h2_rig_read_frame(SSL *ssl, struct h2_rig_head *ret);
/* A header block of HPACK literals: ":status: 200", ... */
size_t h2_rig_block(uint8_t *buf, const char *const *pairs, size_t n);
/* Waits for the child; kills it if it does not exit. */
void h2_rig_end(pid_t pid);
/* Passes the end of a TCP connection to 127.0.0.1 to origin. */
void h2_rig_connect(struct rig *r, uint16_t port);
