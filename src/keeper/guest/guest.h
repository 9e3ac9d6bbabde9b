/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest - requests to the guest, and user streams that wait for a new edge.
 *
 * How      ask_guest writes a request to one end of a socket pair whose other end edge bridges to a
 *          stream of the guest. The struct ask_kind has the path and the function that takes the
 *          answer. waiting_* holds a user's stream while a new edge is being started.
 * Trust    Answers are the guest's: bounded by the buffer, decoded strictly.
 * Owns     The sockets until they are answered or passed to edge.
 * Limits   KEEPER_MAX_ASKS, KEEPER_MAX_WAITING, a timeout for each.
 * See      proto/PROTOCOL.guest
 */
#pragma once

#include "src/keeper/worker/worker.h"
#include "lib/base/clock.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/guestapi/guest_ctl.h"

#define KEEPER_MAX_ASKS 8
#define KEEPER_MAX_WAITING 64
#define KEEPER_ASK_MS clock_limit_ms(4000)
#define KEEPER_WAIT_MS clock_limit_ms(4000) /* below the 5 s that sbxd waits for an answer */

struct ask;
struct keeper;
struct stream_kind;

/* A kind of request, with at most one function that takes the answer. */
struct ask_kind {
	const char *path; /* GUEST_PATH_* */
	/* ok is false if there is no answer or it does not decode; text gives the reason. */
	void (*on_reply)(struct keeper *k, const struct guest_reply *reply);
	/* body is empty if there is no answer. */
	void (*on_body)(struct keeper *k, const struct ask *a, struct slice body);
	/* Only its end matters. */
	void (*on_over)(struct keeper *k);
	/* The sandbox's state depends on it: a guest that a full disk has paused gets more time. */
	bool is_patient;
};

/* A request under way: its body is sent on a socket pair that edge bridges to a stream. */
struct ask {
	const struct ask_kind *kind; /* NULL: free */
	uint32_t gen;
	int fd;
	uint32_t stream;
	size_t n;
	uint8_t body[GUEST_MAX_TEXT + 64];
	int link; /* connection of sbxd that gets the answer; -1: none */
	uint32_t link_gen, link_msg;
	uint32_t timeout_ms;
	struct loop_timer timer;
};

/* A user's stream that waits for edge. */
struct waiting {
	int fd; /* -1: free */
	uint32_t gen;
	int link;
	uint32_t link_gen, msg;
	struct loop_timer timer;
};

extern const struct stream_kind session_stream; /* a user's exec */

void ask_init(struct keeper *k);
bool ask_is_live(const struct keeper *k, struct loop_key key);
int ask_guest(struct keeper *k, const struct ask_kind *kind, struct slice body, uint32_t timeout_ms,
	int link, uint32_t link_msg) MUST_CHECK;
void ask_on_readable(struct keeper *k, const struct loop_event *ev);
void ask_on_timeout(struct keeper *k, const struct loop_event *ev);
/* The VM continues after a pause: restarts the deadlines of all requests. */
void ask_give_time(struct keeper *k);
void ask_drop_all(struct keeper *k);

/* waiting.c */
void waiting_init(struct keeper *k);
bool waiting_is_live(const struct keeper *k, struct loop_key key);
/* Takes fd. */
int waiting_add(struct keeper *k, int link, uint32_t msg, int fd) MUST_CHECK;
void waiting_flush(struct keeper *k);
void waiting_drop_all(struct keeper *k);
void waiting_on_timeout(struct keeper *k, const struct loop_event *ev);
