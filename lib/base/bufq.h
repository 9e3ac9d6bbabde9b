/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bufq - a byte queue with a fixed maximum: full means stop reading, never grow.
 *
 * How      A ring of `size` bytes made by bufq_init. Readers peek the longest contiguous run and
 *          consume; writers ask for space the same way. bufq_recv and bufq_drain do one call,
 *          without waiting (bufq_drain: if fd is non-blocking).
 * Trust    Bytes in flight from any peer. Every program.
 * Owns     Its ring, freed by bufq_done.
 * Limits   The size given at the start. The ring is allocated on first use, so idle ones are free.
 * See      bufq_test.c
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "slice.h"

struct bufq {
	uint8_t *ring;
	size_t size;
	size_t head; /* first unread byte */
	size_t n;    /* unread bytes */
};

void bufq_init(struct bufq *q, size_t size);
void bufq_done(struct bufq *q);

static inline size_t bufq_len(const struct bufq *q)
{
	return q->n;
}

static inline size_t bufq_space(const struct bufq *q)
{
	return q->size - q->n;
}

/* The longest contiguous unread run. */
struct slice bufq_peek(const struct bufq *q);
void bufq_consume(struct bufq *q, size_t n);
/* Appends as much as fits; gives the count. */
size_t bufq_put(struct bufq *q, struct slice s);
/* Moves up to n bytes out; gives the count. */
size_t bufq_take(struct bufq *q, void *p, size_t n);
/* Gives the ring back to the heap when it is empty. */
void bufq_trim(struct bufq *q);
/* One recv(2) of at most max bytes into the queue, without waiting: bytes, 0 at the end, -EAGAIN,
 * -ENOBUFS when full. */
ssize_t bufq_recv(struct bufq *q, int sock, size_t max) MUST_CHECK;
/* One write(2) out of the queue: bytes (0 when empty), -EAGAIN or an error. */
ssize_t bufq_drain(struct bufq *q, int fd) MUST_CHECK;
