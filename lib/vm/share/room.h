/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room - lookups of virtiofsd that wait until the guest has forgotten files.
 *
 * How      virtiofsd opens a descriptor for each file that the guest knows and keeps it until the
 *          guest forgets the file. The kernel gives the lowest free number, so a number in the last
 *          quarter of the limit means that three quarters are in use. Right after the open comes a
 *          statx of the new descriptor; there a seccomp filter sends virtiofsd to a listener
 *          (jail_plan.notify_full) and it waits. Below that number there is no cost. The owner of
 *          the share takes the lookup (room_next), makes the guest forget unused files, and lets
 *          the lookup continue (room_go_on). FORGET has a separate queue and thread, so it is
 *          handled while a lookup waits. With hidden names the supervisor (hide.h) has the
 *          listener; it sends a request over a socket pair and waits for the answer, ROOM_WAIT_MS
 *          at most.
 * Trust    Numbers of the kernel, chosen by virtiofsd; a compromised one can send any number of
 *          them, each of which costs a message. No decision depends on them.
 * Limits   ROOM_WAIT_MS.
 * Never    Answers with an error: a lookup continues in every case, and fails with EMFILE if the
 *          limit is reached.
 * See      share.h, src/keeper/machine/crowd.c, room_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

#define ROOM_WAIT_MS 1000

struct seccomp_notif;

struct room {
	int fd; /* the listener, or a socket to the supervisor; -1: none */
	bool is_socket;
	unsigned nofile; /* the limit */
};

/* A lookup that waits: its descriptor, and how to name it in room_go_on. */
struct room_wait {
	uint64_t id;
	unsigned number;
};

/* The supervisor's side. */
struct room_ask {
	int sock; /* -1: none */
	unsigned full_at;
};

/* After room.fd is readable. -EAGAIN: none any more; -EPIPE: there will be none again. */
int room_next(const struct room *r, struct room_wait *ret) MUST_CHECK;
void room_go_on(const struct room *r, uint64_t id);

int room_pair(struct room *ret_room, struct room_ask *ret_ask, struct err *err) MUST_CHECK;
/* Sends a request and waits, if the notification is about room. */
void room_ask(const struct room_ask *a, const struct seccomp_notif *req);
