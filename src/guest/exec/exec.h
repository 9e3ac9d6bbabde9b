/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - programs run for the host, and the streams by which it talks to them (PROTOCOL.exec).
 *
 * How      A conn is a stream, an exec a program. A conn begins with SPEC, which makes an exec, or
 *          ATTACH, which takes over one that is there; from then on each knows the other, and
 *          either may go first. An exec goes STARTING (forked; the status pipe tells) -> RUNNING
 *          -> DRAINING (the program has ended, its output is still coming) -> ENDED (all output is
 *          in its ring, the exit status is known). Output goes through the ring (exec_ring.h).
 *
 *          Without its conn, a plain exec becomes an ORPHAN: hang-up now, kill after EXEC_KILL_MS.
 *          A kept one (EXEC_F_KEEP) goes on: its terminal is read into the ring, the newest stays,
 *          and its exit status waits for the next ATTACH. A parked one (exec_park_all) goes on as
 *          far as its ring has room.
 * Trust    The host's frames, checked by exec_frame.h; a violation resets the stream. Programs in
 *          the guest reach none of this: the port is PID 1's.
 * Owns     The processes' pipes and queues; the processes are reaped by main.c.
 * Limits   EXEC_MAX programs, EXEC_MAX_CONNS streams, EXEC_MAX_KEPT sessions, of them
 *          EXEC_MAX_DEAD that have ended, with EXEC_KEPT_RING each. Queues are bounded: a slow
 *          client stops the program's output, a slow program stops the client's input.
 * See      proto/PROTOCOL.exec, exec_test.c
 */
#pragma once

#include "exec_ring.h"
#include "src/guest/init/spawn.h"
#include "lib/base/bufq.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

#define EXEC_MAX 512
#define EXEC_MAX_CONNS WIRE_MAX_STREAMS
#define EXEC_MAX_KEPT 32
#define EXEC_MAX_DEAD 16
/* Output that waits for its acknowledgement: more than is on the way on a fast wire. */
#define EXEC_PLAIN_RING (1024 * 1024)
#define EXEC_KEPT_RING (256 * 1024)
#define EXEC_OUT_QUEUE (128 * 1024)
/* Two frames, so that one can be filled while the other is written. */
#define EXEC_IN_QUEUE (2 * EXEC_MAX_PAYLOAD)
/* Room in the output queue that data never takes: every other frame always fits. */
#define EXEC_RESERVE 2048
/* The client is told so often how much of its input is taken. */
#define EXEC_TAKEN_STEP (32 * 1024)
#define EXEC_KILL_MS 2000
/* What the program itself wrote is in the pipe when it ends and is always delivered, however
 * slow the client. A grandchild may hold the pipe for ever (ssh then hangs) or print a little
 * late (`> >(tee log)`; an immediate close would lose that). So output goes on until the end of
 * the pipe, or so long without a byte, or so long in all; then EXIT is sent and the pipe closed. */
#define EXEC_SILENCE_MS 500
#define EXEC_DRAIN_MS 2000
/* So long a program that came back from a suspension waits for its client. */
#define EXEC_CLAIM_MS 30000
/* So long a program sees a terminal that is one row smaller, to make it redraw. */
#define EXEC_NUDGE_MS 100

enum exec_state {
	EXEC_FREE,
	EXEC_STARTING,
	EXEC_RUNNING,
	EXEC_DRAINING,
	EXEC_ENDED,
	EXEC_ORPHAN,
};

/* One fd in the loop; a hang-up is reported whether wanted or not, so an idle one is taken out. */
struct exec_end {
	int fd;
	uint8_t kind;
	uint32_t events;
	size_t owed; /* bytes that were in the pipe when the program ended */
};

struct exec_conn {
	uint32_t id;	/* of the stream; 0: the slot is free */
	struct exec *e; /* NULL before the first frame and after the last */
	bool begun;	/* STARTED or ATTACHED is in the queue */
	bool last;	/* so is the frame that ends the stream */
	bool acks;	/* the client says what it has */
	bool attaching; /* by `how` */
	bool looks;	/* has no exec: the stream ends with the replay */
	struct exec_attach how;
	uint64_t sent; /* of the ring */
	uint64_t told; /* of the input, in TAKEN */
	struct exec_reader reader;
	struct bufq from_host, to_host, replay;
};

struct exec {
	enum exec_state state;
	uint32_t gen;
	struct exec_conn *conn; /* NULL: nobody is there */
	bool detached, tty, eof_wanted, eof_seen;
	bool parked; /* its client was sent away and is waited for */
	pid_t pid;
	int wait_status;
	uint64_t ended_ms;
	char name[EXEC_MAX_SESSION + 1]; /* "" unless it is kept */
	uint8_t token[EXEC_TOKEN];
	uint64_t serial; /* in the order of their ends */
	uint16_t rows, cols;
	struct exec_ring ring;
	struct screen screen; /* of a kept one, as it stood at the ring's base */
	uint64_t acked;	      /* of the ring */
	uint64_t in_taken;
	struct bufq to_program;
	struct exec_end status, in, out, err;
	struct loop_timer timer;
	struct loop_timer aside; /* kept: the nudge; else the claim */
};

struct execs {
	struct loop *loop;
	struct wire *wire;
	const struct facts *facts;
	uint32_t n_used;
	uint64_t n_ended;
	struct exec slots[EXEC_MAX];
	struct exec_conn conns[EXEC_MAX_CONNS];
};

/* The stream's slot is a conn's. */
int exec_open(struct execs *x, uint32_t id, uint32_t *ret_idx) MUST_CHECK;
void exec_on_data(struct execs *x, uint32_t idx, struct slice bytes);
ssize_t exec_pull(struct execs *x, uint32_t idx, uint8_t *buf, size_t n);
/* The host has ended its half, or the stream is over. */
void exec_on_end(struct execs *x, uint32_t idx);
void exec_on_close(struct execs *x, uint32_t idx);
/* The session has ended: all streams are gone. */
void exec_drop_all(struct execs *x);

/* Before a suspension: every client that can come back is told DETACHED (suspended) and its stream
 * ends; no program ends for it, whatever happens to the wire. Others are not touched. */
void exec_park_all(struct execs *x);
/* After it, or when it is called off: plain execs whose client has not come back within
 * EXEC_CLAIM_MS are hung up. */
void exec_unpark(struct execs *x);

/* What is shown of a kept session. */
struct exec_shown {
	const char *name;
	bool attached, ended, signalled;
	uint8_t value; /* exit status or signal, once it has ended */
};
/* The i-th kept session; false when there are no more. */
bool exec_kept(const struct execs *x, size_t i, struct exec_shown *ret);

void exec_on_event(struct execs *x, const struct loop_event *ev);
/* True when pid was the program of an exec. */
bool exec_on_exit(struct execs *x, pid_t pid, int wait_status);
