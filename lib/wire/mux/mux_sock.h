/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux_sock - moves the bytes of a mux to and from its socket.
 *
 * How      One call each, without waiting.
 * Trust    As mux.h.
 * See      mux_test.c
 */
#pragma once

#include "mux.h"

/* Reads once into buf; *ret is what was read. 0, -EAGAIN, or -EPIPE at the end of the socket. */
int mux_recv(int fd, void *buf, size_t size, struct slice *ret) MUST_CHECK;
/* Sends what the socket accepts. 0 if that is all, -EAGAIN, or -EPIPE. */
int mux_flush(struct mux *m, int fd) MUST_CHECK;
