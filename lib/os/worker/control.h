/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control - a worker's side of its channel to the keeper: fd 3 of sbx-edge, sbx-egress, sbx-origin
 *           and sbx-ssh-agent.
 *
 * How      control_open watches the channel. control_hello sends HELLO when the worker is sealed.
 *          control_on_event receives messages, checks each against the table of the channel and
 *          passes it to ops.on_message. The worker sends its own messages and passes each result to
 *          control_sent. When the keeper does not read, nothing is received either until
 *          ops.on_room has sent what is due: so what is due is limited.
 *          The end of the channel and a message that violates the protocol set done and status.
 * Trust    The keeper's messages are checked like those of any peer.
 * Owns     fd CONTROL_FD.
 * Limits   ops.burst messages per event.
 * See      lib/os/ipc/chan.h, control_test.c, src/keeper/worker/process.h
 */
#pragma once

#include "lib/os/ipc/chan.h"
#include "lib/os/loop/loop.h"

#define CONTROL_FD 3
#define CONTROL_AGAIN_MS 50

/* The exit statuses that all workers have; 1 is a failed start. */
enum control_exit {
	CONTROL_EXIT_OK = 0,	 /* the keeper closed the channel */
	CONTROL_EXIT_KEEPER = 4, /* the keeper violated the protocol */
};

struct control_ops {
	const struct chan *chan;
	uint8_t ev;	  /* kind of the events of the channel */
	uint8_t burst;	  /* messages that are received per event */
	uint8_t ev_again; /* kind of the timer that calls control_flush, if `passed` is set */
	/* What the worker passes to the keeper by descriptor: "a connection". NULL: nothing. */
	const char *passed;
	/* A negative result: the message violates the protocol. */
	int (*on_message)(void *ctx, struct ipc_msg *msg);
	void (*on_room)(void *ctx); /* sends what is due */
};

struct control {
	const struct control_ops *ops;
	void *ctx;
	struct loop *loop;
	uint8_t phase;
	bool is_due;	 /* a message is due, and nothing is received meanwhile */
	bool wants_room; /* a message is due, and messages are received meanwhile */
	bool is_crowded; /* a descriptor could not be passed, and the log has it */
	struct loop_timer again;
	bool done;
	int status;
};

/* Initializes the loop. Ends the process if fd CONTROL_FD cannot be watched. */
void control_open(struct control *c, const struct control_ops *ops, struct loop *loop, void *ctx);
/* Ends the process if the keeper does not take HELLO. */
void control_hello(struct control *c);
/* The result of a sent message: whether the keeper has it. If not, the message is due, or the
 * keeper has exited. */
bool control_sent(struct control *c, int r) MUST_CHECK;
/* Calls ops.on_room when the keeper reads again, and keeps receiving. */
void control_want_room(struct control *c);
/* Sends what is due, now. */
void control_flush(struct control *c);
void control_on_event(struct control *c, uint32_t events);
/* Receives all messages that are there. */
void control_drain(struct control *c);
/* The first status counts. */
void control_quit(struct control *c, int status);
