/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - jailed children of a program that cannot start programs itself.
 *
 * How      A broker (sbx-keeper, sbxd) forks a spawner (spawner.h) before it reads the first byte
 *          of input, and gives up exec, namespaces and most files afterwards. The functions here
 *          send requests to that spawner: one packet for each request and one for each answer, with
 *          descriptors. In a program without a spawner they do the same work directly. A child is
 *          known by its pidfd, which the broker can watch. Its parent is the spawner, so the broker
 *          does not wait for it: worker_reap requests the exit status.
 * Trust    Runs in the broker. The spawner is our own process; its answers are checked anyway.
 * Owns     One connection to one spawner for each process. A struct jail_child is the caller's.
 * Limits   WORKER_ANSWER_MS for an answer; a spawner that takes longer is killed, and its children
 *          with it. From Landlock 6 on a sealed broker cannot signal it: the spawner then exits
 *          when its socket is closed, after the current request. WORKER_MAX_BODY bytes,
 *          WORKER_MAX_FDS descriptors.
 * See      spawner.h, worker_test.c
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/os/jail/jail.h"

#define WORKER_MAX_BODY 65536
#define WORKER_MAX_FDS (JAIL_MAX_FDS + 1)
#define WORKER_SIGNALED 256 /* added to the signal that ended a child */
/* Two jailed starts, one after the other, and some room. */
#define WORKER_ANSWER_MS (3 * JAIL_START_TIMEOUT_MS)

enum worker_kind {
	WORKER_SPAWN = 1,
	WORKER_KILL,
	WORKER_REAP,
	WORKER_WRITTEN,
	WORKER_OWN = 64, /* from here on: what spawner_rules.own knows */
};

/* A question or its answer. */
struct worker_msg {
	uint16_t kind; /* echoed in the answer */
	int32_t code;  /* of an answer: 0 or more, or a negative errno with the sentence as body */
	size_t n;
	uint8_t body[WORKER_MAX_BODY];
	size_t n_fds;
	int fds[WORKER_MAX_FDS];
};

/* Whether this process has a spawner. */
bool worker_is_on(void);
/* Whether it had one, which did not answer or answered nonsense. */
bool worker_is_lost(void);

/* As jail_spawn. plan.scaffold cannot be passed on: such a child is started by an own kind. */
int worker_spawn(
	const struct jail_plan *plan, struct jail_child *ret_child, struct err *err) MUST_CHECK;
/* SIGKILL; does not wait. */
void worker_kill(const struct jail_child *child);
/* Waits until it has ended (at most JAIL_START_TIMEOUT_MS) and gives its exit status, -1 when there
 * is none. Closes nothing. */
int worker_reap(const struct jail_child *child);
/* Does not wait: the exit status, or WORKER_SIGNALED and the signal that killed it. -EAGAIN while
 * it runs, -ESRCH if the spawner did not start it or has already reported it. */
int worker_status(pid_t pid) MUST_CHECK;
/* All of it: SIGKILL, the wait, its descriptors. */
void worker_end(struct jail_child *child);
/* How many bytes it and its own children have written so far. */
uint64_t worker_written(pid_t pid);

/* A question of an own kind: msg is sent, then holds the answer, whose descriptors are the caller's
 * (worker_msg_done closes what is left). msg->fds of the question stay the caller's. */
int worker_ask(struct worker_msg *msg, struct err *err) MUST_CHECK;
void worker_msg_done(struct worker_msg *msg);
/* An empty question; there is one at a time. */
struct worker_msg *worker_question(uint16_t kind);
/* As worker_ask, for an answer of one descriptor, which is returned; -EBADMSG without one. Others
 * are closed. */
int worker_ask_fd(struct worker_msg *msg, struct err *err) MUST_CHECK;
/* Puts fd into an answer, or returns the error that fd is. */
int worker_give_fd(struct worker_msg *answer, int fd) MUST_CHECK;
/* The descriptor at place i of an answer, taken out of it; -1 when there is none. */
int worker_take_fd(struct worker_msg *msg, size_t i);
