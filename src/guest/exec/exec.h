/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - programs that run for the host, and their streams (PROTOCOL.exec).
 *
 * How      A conn is a stream, an exec a program. A conn begins with SPEC, which creates an exec,
 *          or ATTACH, which attaches to an existing one; then each refers to the other, and either
 *          may end first. An exec goes STARTING (forked; the status pipe reports) -> RUNNING ->
 *          DRAINING (the program has exited, its output is still coming) -> ENDED (all output is in
 *          its ring, the exit status is known). Output goes through the ring (exec_ring.h).
 *
 *          Without its conn, a plain exec becomes an ORPHAN: hang-up now, kill after EXEC_KILL_MS.
 *          A kept one (EXEC_F_KEEP) keeps running: its terminal is read into the ring, the newest
 *          output stays, and its exit status waits for the next ATTACH. A parked one
 *          (exec_park_all) keeps running as far as its ring has room.
 * Trust    The host's frames, checked by exec_frame.h; a violation resets the stream. Programs in
 *          the guest cannot reach this: only PID 1 has the port.
 * Owns     The processes' pipes and queues; the processes are reaped by main.c.
 * Limits   EXEC_MAX programs, EXEC_MAX_CONNS streams, EXEC_MAX_KEPT sessions, of them
 *          EXEC_MAX_DEAD that have ended, with EXEC_KEPT_RING each. Queues are bounded: a slow
 *          client stops the program's output, a slow program stops the client's input.
 * See      proto/PROTOCOL.exec, exec_test.c
 */
#pragma once

#include "exec_state.h"

/* The slot of the stream is a conn's. */
int exec_open(struct execs *x, uint32_t id, uint32_t *ret_idx) MUST_CHECK;
void exec_on_data(struct execs *x, uint32_t idx, struct slice bytes);
ssize_t exec_pull(struct execs *x, uint32_t idx, uint8_t *buf, size_t n);
/* The host has closed its half, or the stream has ended. */
void exec_on_end(struct execs *x, uint32_t idx);
void exec_on_close(struct execs *x, uint32_t idx);
/* The session has ended, and with it all streams. */
void exec_drop_all(struct execs *x);

/* Before a suspension: every client that can reattach gets DETACHED (suspended) and its stream
 * ends. No program ends because of it or of the wire. Other clients are not affected. */
void exec_park_all(struct execs *x);
/* After a suspension, or if it is cancelled: plain execs whose client has not reattached within
 * EXEC_CLAIM_MS are hung up. */
void exec_unpark(struct execs *x);

/* Information about a kept session. */
struct exec_shown {
	const char *name;
	bool attached, ended, signalled;
	uint8_t value; /* exit status or signal, after its exit */
};
/* Returns the i-th kept session; false if there are no more. */
bool exec_kept(const struct execs *x, size_t i, struct exec_shown *ret);

void exec_on_event(struct execs *x, const struct loop_event *ev);
/* Returns true if pid was the program of an exec. */
bool exec_on_exit(struct execs *x, pid_t pid, int wait_status);
