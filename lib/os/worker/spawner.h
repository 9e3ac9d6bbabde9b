/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner - the process that starts a broker's jailed children on request.
 *
 * How      spawner_start forks before the broker seals itself. The fork keeps one socket, a pidfd
 *          of the broker and nothing else of its descriptors, and handles one request at a time:
 *          start a program that is in the list, with mounts from below the listed directories;
 *          kill, reap or inspect a child that it started; or a request type of the program, which
 *          does one fixed thing with state from before the fork. It exits with the broker (it
 *          watches the pidfd; a broker that Landlock prevents from signaling sends no parent-death
 *          signal), and its jailed children die with it. It has no_new_privs and a list of refused
 *          system calls (jail_broker_spawner), as has everything that it starts, unless the rules
 *          have keeps_privileges.
 * Trust    The broker may have been compromised: packets are bounded and strictly decoded, and a
 *          bad one ends the spawner. It reads nothing else.
 * Owns     The table of its children. It reaps them on request.
 * Limits   SPAWNER_MAX_CHILDREN; those of worker.h.
 * Never    Starts a program that is not in spawner_rules, signals a process that it did not start,
 *          or uses a path outside of the listed directories.
 * See      worker.h, worker_test.c, src/keeper/worker/hands.h, src/sbxd/hands/hands.h
 */
#pragma once

#include "worker.h"

/* sbxd has a keeper for each of 1,024 sandboxes. */
#define SPAWNER_MAX_CHILDREN 4224

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

/* For spawner_rules.own: a child that the broker may kill, reap and inspect from now on. */
int spawner_keep(pid_t pid, struct err *err) MUST_CHECK;
/* Kills and reaps the child; the broker gets no notice. */
void spawner_drop(pid_t pid);
/* Whether it is one that was not reaped yet. */
bool spawner_has(pid_t pid);
