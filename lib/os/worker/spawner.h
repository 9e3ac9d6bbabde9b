/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner - the process that starts a broker's jailed children when it is asked to.
 *
 * How      spawner_start forks before the broker seals itself. The fork keeps one socket, a pidfd
 *          of the broker and nothing else of its descriptors, and answers one question at a time:
 *          start a program that is in the list, with mounts from below the listed directories;
 *          kill, reap or look at a child that it started; or an own kind of the program, which does
 *          one fixed thing with what the fork remembers from before. It ends with the broker (it
 *          watches the pidfd; the parent-death signal of a broker that Landlock keeps from
 *          signalling does not come), and its jailed children die with it. It has no_new_privs and
 *          a list of refused system calls (jail_broker_spawner), as has everything that it starts,
 *          unless the rules say keeps_privileges.
 * Trust    The broker may have been taken over: packets are bounded and strictly decoded, and a bad
 *          one ends the spawner. It reads nothing else.
 * Owns     The table of its children. It reaps them, when it is asked to.
 * Limits   SPAWNER_MAX_CHILDREN; those of worker.h.
 * Never    Starts a program that is not in spawner_rules, signals a process that it did not start,
 *          or takes a path outside of the listed directories.
 * See      worker.h, worker_test.c, src/keeper/worker/hands.h, src/sbxd/hands/hands.h
 */
#pragma once

#include "worker.h"

/* sbxd has a keeper for each of 1,024 sandboxes. */
#define SPAWNER_MAX_CHILDREN 1152

struct spawner_program {
	enum jail_profile profile;
	const char *path;
};

struct spawner_rules {
	const struct spawner_program *programs;
	size_t n_programs;
	const struct jail_root *roots; /* where mounts may come from; must outlive the call */
	size_t n_roots;
	/* Answers a question of kind WORKER_OWN or more; `a` is empty. The result is the
	 * answer's code, negative with the sentence in err: no. -EBADMSG ends the spawner. The
	 * descriptors in `a` are closed once they are sent; those of `q` are closed too, unless
	 * taken out. NULL: there are no such questions. */
	int (*own)(void *ctx, struct worker_msg *q, struct worker_msg *a, struct err *err);
	void *ctx;
	/* Neither no_new_privs nor the list of refused calls, for programs that may be set-uid. */
	bool keeps_privileges;
};

/* From here on worker_* of this process ask the spawner. 0 in the broker; does not return in the
 * spawner. */
int spawner_start(const struct spawner_rules *rules, struct err *err) MUST_CHECK;
/* Watch it: readable when the spawner has ended. -1 without one. */
int spawner_pidfd(void);
/* The broker's last step, and for tests: the spawner and what it started end. */
void spawner_stop(void);

/* For spawner_rules.own: a child that the broker may kill, reap and look at from now on. */
int spawner_keep(pid_t pid, struct err *err) MUST_CHECK;
/* Kills and reaps it: the broker is not told of it. */
void spawner_drop(pid_t pid);
/* Whether it is one that was not reaped yet. */
bool spawner_has(pid_t pid);
