/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park - PID 1's side of /park and /wake.
 *
 * How      SUSPEND: PID 1 and sbx-guest-net leave the group of programs, a child (park_child.h)
 *          does the rest and stays; the reply waits for it. /wake sets clock and entropy, mounts
 *          the share again, notifies the child, and waits for its reply. Without a child (the VM
 *          was parked for an IMAGE, or not at all) /wake is clock, entropy and mounts only. IMAGE:
 *          the disks are synced and caches dropped. FREEZE: the file systems of both disks are
 *          frozen (FIFREEZE) until /wake, at most PARK_FSFREEZE_MS.
 * Trust    Requests of the host. A child that exits without a reply leaves nothing frozen.
 * Owns     The child and its socket.
 * See      park_child.h, proto/PROTOCOL.guest
 */
#pragma once

#include "forget.h"
#include "park_image.h"
#include "src/guest/setup/setup.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/loop/loop.h"

#define PARK_FSFREEZE_MS 20000

struct park {
	struct loop *loop;
	struct mounts *mounts;
	pid_t net; /* sbx-guest-net while parked */
	pid_t child;
	int sock;
	enum { PARK_AWAKE, PARK_PARKING, PARK_PARKED, PARK_WAKING } state;
	bool has_frozen_fs;
	struct loop_timer thaw;
	struct guest_mounts wanted;
};

/* A delayed answer. */
struct park_answer {
	const char *path; /* of the request; NULL: none */
	struct guest_reply reply;
};

void park_init(struct park *p, struct loop *loop, struct mounts *mounts);
/* 0: done. -EINPROGRESS: park_on_event returns the answer. */
int park_begin(struct park *p, enum guest_park kind, pid_t net, struct err *err) MUST_CHECK;
int park_wake(struct park *p, struct guest_wake *wake, struct err *err) MUST_CHECK;
void park_on_event(struct park *p, struct park_answer *ret);
void park_on_timer(struct park *p);
/* Returns true if pid was the child. */
bool park_on_exit(struct park *p, pid_t pid, struct park_answer *ret);
