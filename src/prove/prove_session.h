/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_session - the one session in a sandbox that runs the inside parts of its probes.
 *
 * How      Two `sbx exec -u root`: one copies sbx-probe into a directory below /run, one starts it
 *          there as the driver of parts (src/guest/probe/host/drive.c). The driver gets one part at
 *          a time and returns its result. When its input is closed, also when we are killed, the
 *          driver removes the directory.
 * Trust    Responses come from the guest: lib/wire/guestapi/probe_frame.h. Unexpected data closes
 *          the session, and pending requests stay unanswered.
 * Owns     Its programs; prove_session_close stops them and waits a moment for their cleanup.
 * Limits   PROVE_SESSION_OPEN_S to open, the part's own seconds and PROVE_SESSION_GRACE_S for an
 *          answer.
 * Never    Starts a sandbox: the caller has checked that it is running.
 * See      data/probes/README
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/wire/guestapi/probe_frame.h"
#include "prove_job.h"

#define PROVE_SESSION_OPEN_S 60
#define PROVE_SESSION_GRACE_S 15
#define PROVE_SESSION_CLOSE_S 10
#define PROVE_SESSION_FDS (PROVE_JOB_FDS + 2)

enum prove_session_state {
	PROVE_SESSION_CLOSED,
	PROVE_SESSION_PUTTING, /* the tool */
	PROVE_SESSION_OPEN,
	PROVE_SESSION_BROKEN, /* see `why` */
};

struct prove_session {
	const char *sbx; /* its path */
	const char *sandbox;
	struct slice tool; /* the caller's */
	enum prove_session_state state;
	char dir[64];
	struct prove_job job;
	struct probe_reader reader;
	const uint8_t *sending;
	uint8_t *own; /* the buffer of sending, if owned */
	size_t left;
	bool asked;	 /* a part is under way */
	bool called_off; /* and its timeout expired */
	uint32_t number;
	uint64_t late_ms;
	char why[300];
};

void prove_session_open(struct prove_session *s);
/* Only while it is open and no part is under way. */
void prove_session_ask(
	struct prove_session *s, uint32_t number, unsigned seconds, const char *script);
size_t prove_session_poll(const struct prove_session *s, struct pollfd *ret);
int prove_session_wait_ms(const struct prove_session *s);
/* Returns true and the answer to the request. The session may have become broken instead. */
bool prove_session_look(struct prove_session *s, struct probe_answer *ret);
void prove_session_close(struct prove_session *s);
