/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_h2_rig - for line_h2_test.c: a server of HTTP/2 in a process of its own, at the end of a
 * rig's socket.
 *
 * How      h2_rig_serve answers a WANT and forks. The child does TLS and serves by path: /echo
 *          sends back what comes, as it comes; /dump says the fields it got; /big?N sends N bytes;
 *          /sink counts; others are named in line_h2_rig.c. h2_rig_attack does the same with a
 *          script of raw frames instead of nghttp2.
 * Trust    Test program.
 */
#pragma once

#include "origin_rig.h"

/* What a server does otherwise than others; zero is a good one. */
struct h2_rig_manner {
	uint32_t max_streams; /* 0: 1,000 */
	unsigned n_refused;   /* so many requests are refused */
	unsigned goaway_at;   /* at the n-th request: GOAWAY that leaves this and later ones out */
	bool is_slow;	      /* reads little at once */
};

pid_t h2_rig_serve(struct rig *r, const struct h2_rig_manner *manner);
/* The script writes to the line after both SETTINGS; `stream` is the first request's. */
typedef void (*h2_rig_script)(SSL *ssl, uint32_t stream);
pid_t h2_rig_attack(struct rig *r, h2_rig_script script);
/* One raw frame; false when the line is gone. */
bool h2_rig_frame(SSL *ssl, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n);
/* The next frame of origin; its payload is dropped. False when the line is gone. */
struct h2_rig_head {
	uint8_t type, flags;
	uint32_t stream;
};
bool h2_rig_read_frame(SSL *ssl, struct h2_rig_head *ret);
/* A header block of HPACK literals: ":status: 200", ... */
size_t h2_rig_block(uint8_t *buf, const char *const *pairs, size_t n);
/* Waits for the child; kills it when it does not end. */
void h2_rig_end(pid_t pid);
/* Gives the end of a TCP connection to 127.0.0.1 to origin. */
void h2_rig_connect(struct rig *r, uint16_t port);
