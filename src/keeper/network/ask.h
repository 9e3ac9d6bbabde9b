/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - the keeper's own small questions to the guest, and which of them are under way.
 *
 * How      See ask.c.
 * Trust    Answers are the guest's: bounded by the buffer.
 * See      proto/PROTOCOL.guest
 */
#pragma once

#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/loop/loop.h"

struct ask;
struct keeper;

/* What is asked, and the function that takes the answer: at most one. */
struct ask_kind {
	const char *path; /* GUEST_PATH_* */
	/* ok is false if there is no answer or it does not decode; text says which. */
	void (*on_reply)(struct keeper *k, const struct guest_reply *reply);
	/* body is empty if there is no answer. */
	void (*on_body)(struct keeper *k, const struct ask *a, struct slice body);
	/* Only that it is over matters. */
	void (*on_over)(struct keeper *k);
	/* The life of the sandbox depends on it: a guest that a full disk has stopped has time. */
	bool is_patient;
};

/* A question under way: the body goes out on a socket pair that edge bridges to a stream. */
struct ask {
	const struct ask_kind *kind; /* NULL: free */
	uint32_t gen;
	int fd;
	uint32_t stream;
	size_t n;
	uint8_t body[GUEST_MAX_TEXT + 64];
	int link; /* which connection of sbxd gets the answer, -1: none */
	uint32_t link_gen, link_msg;
	uint32_t timeout_ms;
	struct loop_timer timer;
};
