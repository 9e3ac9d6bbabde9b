/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_link - the edge process, and the streams that it bridges to the guest.
 *
 * How      edge_start starts sbx-edge. struct edge_ops passes its messages to the parts above. A
 *          stream has a struct stream_kind with the functions that are called at its end.
 * Trust    edge may be compromised by the guest: every message is untrusted.
 * Owns     The process and the table of streams.
 * Limits   KEEPER_MAX_STREAMS, KEEPER_EDGE_*.
 * See      lib/os/ipc/edge_chan.h
 */
#pragma once

#include "process.h"
#include "lib/base/clock.h"
#include "lib/os/ipc/edge_chan.h"

#define KEEPER_MAX_STREAMS 256
#define KEEPER_EDGE_GAP_MS 250 /* the guest must see the port closed before it opens again */
#define KEEPER_EDGE_READY_MS clock_limit_ms(1500) /* a new edge on a running guest */
#define KEEPER_EDGE_TRIES 20 /* edges lost in a row before the sandbox is stopped */

/* The purpose of a stream. */
struct stream_kind {
	bool is_session; /* of a user: counted in state.sessions */
	bool is_quiet;	 /* refusals are not logged */
	void (*on_refused)(struct keeper *k, uint32_t stream);
	void (*on_closed)(struct keeper *k);
};

/* A stream that edge bridges to the guest. */
struct stream {
	const struct stream_kind *kind; /* NULL: free */
	uint32_t gen;
};

struct edge_ops {
	void (*fill_ca)(struct keeper *k, struct edge_config *config);
	void (*on_ready)(struct keeper *k);
	int (*on_ask)(struct keeper *k, const struct ipc_msg *msg, struct err *err);
	int (*on_gone)(struct keeper *k, const struct ipc_msg *msg);
	int (*on_ended)(struct keeper *k, const struct ipc_msg *msg);
	int (*on_ca)(struct keeper *k, const struct ipc_msg *msg);
	void (*on_room)(struct keeper *k);
	void (*on_end)(struct keeper *k);
};

struct edge_link {
	struct worker worker;
	const struct edge_ops *ops;
};

void edge_init(struct keeper *k, const struct edge_ops *ops);
bool edge_is_live(const struct keeper *k, struct loop_key key);
int edge_start(struct keeper *k, struct err *err) MUST_CHECK;
void edge_on_event(struct keeper *k, const struct loop_event *ev);
void edge_on_exit(struct keeper *k);
void edge_on_timer(struct keeper *k);
void edge_kill(struct keeper *k);
/* Takes fd. Returns the number of the stream. */
int edge_open_stream(struct keeper *k, const char *path, int fd, const struct stream_kind *kind,
	uint32_t *ret_stream) MUST_CHECK;
/* The process runs; and it has reached the guest. */
bool edge_is_alive(const struct keeper *k);
bool edge_is_up(const struct keeper *k);
/* Calls on_room when edge accepts messages again. */
void edge_want_room(struct keeper *k);
