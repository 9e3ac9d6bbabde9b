/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - one child process of the keeper with a control channel: start, messages, exit, restart.
 *
 * How      A struct worker_ops describes a program: its jail profile, its event numbers, its
 *          channel, its callbacks and how it is restarted. worker_start makes the channel, spawns
 *          the program and watches both; if one of the three fails, nothing is left running. The
 *          first message is HELLO with the build id; every message is checked against the channel's
 *          table. A protocol violation kills the process, and on_violation decides what follows.
 * Trust    The process may be compromised by the bytes that it reads. Its messages are untrusted.
 * Owns     The process, the keeper's end of the channel and the restart timer.
 * Limits   worker_restart doubles the pause from gap_ms up to max_gap_ms.
 * See      lib/os/worker/worker.h, edge_link.c, egress_link.c, ssh_agent_link.c,
 *          src/keeper/credential/origin_link.c
 */
#pragma once

#include "lib/os/ipc/chan.h"
#include "lib/os/jail/jail.h"
#include "lib/os/loop/loop.h"

#define WORKER_MAX_VIOLATIONS 3 /* over the whole run */

struct keeper;
struct worker;

struct worker_ops {
	const char *program; /* in libexec */
	enum jail_profile profile;
	uint8_t ev_message, ev_end, ev_timer;
	const struct chan *chan;
	uint16_t secret_message; /* the body of this one is wiped; 0: none */
	uint32_t gap_ms, max_gap_ms;
	uint32_t steady_ms; /* a process that lived this long resets the pause; 0: never */
	/* NULL: worker_spawn_jailed without arguments. */
	int (*spawn)(struct keeper *k, struct worker *w, int sock, struct jail_child *ret,
		struct err *err);
	int (*on_hello)(struct keeper *k, struct worker *w, struct err *err);
	int (*on_message)(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err);
	void (*on_room)(struct keeper *k, struct worker *w); /* messages are accepted again */
	/* The process was reaped; w->gen already belongs to the next one. */
	void (*on_end)(struct keeper *k, struct worker *w, const char *why);
	void (*on_violation)(struct keeper *k, struct worker *w); /* killed and recorded */
	/* "for HOST:PORT " in log lines; NULL: nothing. */
	const char *(*get_target)(const struct worker *w);
};

struct worker {
	const struct worker_ops *ops;
	bool alive;
	uint8_t phase; /* of ops->chan; the last one while there is no process */
	struct jail_child child;
	int sock;
	uint32_t gen, idx;   /* of its loop keys */
	unsigned tries;	     /* restarts in a row */
	unsigned violations; /* over the whole run */
	uint64_t started_ms; /* of this process */
	struct loop_timer timer;
};

void worker_init(struct worker *w, const struct worker_ops *ops, uint32_t idx);
int worker_spawn_jailed(struct keeper *k, const struct worker_ops *ops, char *const *argv, int sock,
	struct jail_child *ret, struct err *err) MUST_CHECK;
int worker_start(struct keeper *k, struct worker *w, struct err *err) MUST_CHECK;
/* Kills and reaps the process, if there is one, and clears the restart timer. */
void worker_stop(struct keeper *k, struct worker *w, const char *why);
/* For ops.ev_end: the process exited unexpectedly. */
void worker_on_exit(struct keeper *k, struct worker *w);
/* For ops.ev_message. */
void worker_on_event(struct keeper *k, struct worker *w, const struct loop_event *ev);
/* Calls ops.on_room when the channel accepts messages again. */
void worker_want_room(struct keeper *k, struct worker *w);
/* Sets the timer for the next start, while the sandbox starts or runs. */
void worker_restart(struct keeper *k, struct worker *w);
bool worker_is_current(const struct worker *w, struct loop_key key);
