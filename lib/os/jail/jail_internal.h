/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_internal - the stages of jail.c, for spawn.c only, in the order in which they are called.
 *
 * How      spawn.c fills a struct jail_state before the fork; the child goes through the stages.
 * Trust    Runs in keeper's child, between fork and exec. Sees no guest bytes.
 */
#pragma once

#include "filter.h"
#include "jail.h"

struct jail_state {
	const struct jail_plan *plan;
	const struct jail_row *row;
	struct filter filter, notify;
	int program_fd; /* number `nofile`, which no later fd can have */
	int null_fd;	/* stdin, and the log where there is none */
	int sync_fd;	/* to the spawner; CLOEXEC */
	rlim_t nofile;
	uid_t uid;
	gid_t gid;
	bool has_ids; /* of its user namespace, already */
};

int jail_start(struct jail_state *s, struct err *err) MUST_CHECK;
int jail_enter(struct jail_state *s, struct err *err) MUST_CHECK;
int jail_files(struct jail_state *s, struct err *err) MUST_CHECK;
int jail_lock(struct jail_state *s, struct err *err) MUST_CHECK;

/* self.c: 0 if no process traces this one, by its open /proc/self/status. */
int jail_refuse_tracer(int status_fd, struct err *err) MUST_CHECK;

/* landlock.c: allows the plan's mounts and the program, refuses every other path. 1 when the kernel
 * has no Landlock. */
int landlock_apply(const struct jail_state *s, struct err *err) MUST_CHECK;
/* 0 when absent. */
int landlock_abi(void);
