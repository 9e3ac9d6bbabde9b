/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop - one epoll, one heap of timers, one event at a time for the switch in main.c.
 *
 * How      The caller that registers an fd or sets a timer passes a struct loop_key: the program's
 *          own kind of event, an index into its tables and the generation of that slot. loop_next
 *          returns the key. A stale event carries an old generation and is dropped by the receiver.
 * Trust    Every program. Sees no bytes.
 * Owns     The epoll fd. Timers belong to the caller and must be cleared before they are freed.
 * Limits   LOOP_MAX_TIMERS, LOOP_MAX_IDX.
 * See      loop_test.c
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "lib/base/attr.h"

#define LOOP_MAX_TIMERS 4096
#define LOOP_MAX_IDX 0xffffff
#define LOOP_BATCH 64

struct loop_key {
	uint8_t kind;
	uint32_t gen; /* all 32 bits, so that a counter may wrap */
	uint32_t idx; /* at most LOOP_MAX_IDX */
};

struct loop_timer {
	uint64_t at_ms; /* monotonic */
	struct loop_key key;
	uint32_t pos; /* place in the heap + 1; 0 when not set */
};

struct loop_event {
	struct loop_key key;
	uint32_t events; /* EPOLLIN ...; 0 for a timer */
};

struct loop {
	int epfd;
	struct epoll_event batch[LOOP_BATCH];
	int n_batch, next;
	bool timers_first; /* whose turn it is when both timers and fds are ready */
	struct loop_timer **heap;
	uint32_t n_timers, room;
};

int loop_init(struct loop *l) MUST_CHECK;
void loop_done(struct loop *l);
int loop_add(struct loop *l, int fd, uint32_t events, struct loop_key key) MUST_CHECK;
int loop_mod(struct loop *l, int fd, uint32_t events, struct loop_key key) MUST_CHECK;
/* Call before closing an fd that was added. */
void loop_del(struct loop *l, int fd);
/* Sets or moves a timer; fires once. */
void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at_ms, struct loop_key key);
void loop_timer_clear(struct loop *l, struct loop_timer *t);
/* Waits for the next event. Only a bug makes it fail. */
void loop_next(struct loop *l, struct loop_event *ret_ev);
/* Whether the next event is already there: what may be done once for many can wait for it. */
static inline bool loop_has_more(const struct loop *l)
{
	return l->next < l->n_batch;
}
/* Blocks the signals for normal delivery and gives a signalfd for them. */
int loop_signalfd(const int *signals, size_t n) MUST_CHECK;
