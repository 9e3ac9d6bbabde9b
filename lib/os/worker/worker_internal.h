/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_internal - packets and plans as bytes, for worker.c and spawner.c.
 */
#pragma once

#include "spawner.h"

#define WORKER_CROWDED_MS 1000
#define WORKER_CROWDED "processes of this user have too many descriptors in flight: try again"
#define PLAN_MAX_ARGS 256
#define PLAN_MAX_MOUNTS 256

/* A plan that was decoded: its strings are in the message, its descriptors are the message's. */
struct plan_box {
	struct jail_plan plan;
	char *argv[PLAN_MAX_ARGS + 1];
	char *envp[PLAN_MAX_ARGS + 1];
	struct jail_mount mounts[PLAN_MAX_MOUNTS];
	struct jail_fd fds[JAIL_MAX_FDS];
};

/* The descriptors in msg are the plan's own. */
int plan_put(const struct jail_plan *plan, struct worker_msg *msg, struct err *err) MUST_CHECK;
int plan_get(struct worker_msg *msg, struct plan_box *ret_box) MUST_CHECK;

/* Blocking; the descriptors stay the caller's. -ETOOMANYREFS: nothing was sent, because processes
 * of the user have had too many descriptors in flight for WORKER_CROWDED_MS. */
int packet_send(int sock, const struct worker_msg *msg) MUST_CHECK;
/* 1 with a message, 0 at the end, -ETIMEDOUT, -EBADMSG. timeout_ms -1: for ever. */
int packet_recv(int sock, struct worker_msg *ret_msg, int timeout_ms) MUST_CHECK;

/* The spawner's loop: its exit status. It ends with the process of the pidfd `broker`. */
int spawner_serve(const struct spawner_rules *rules, int sock, int broker);

/* What a spawner does for a child, and a program without one does itself. */
int child_status(pid_t pid, int *ret_status) MUST_CHECK;
uint64_t child_written(pid_t pid);
