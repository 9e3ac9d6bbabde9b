/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_state - the programs that run for the host, and their streams.
 *
 * How      exec.c, exec_io.c and exec_attach.c change them; see exec.h.
 * Trust    Internal.
 */
#pragma once

#include "exec_limits.h"
#include "exec_ring.h"
#include "lib/base/bufq.h"
#include "lib/os/loop/loop.h"
#include "spawn.h"

enum exec_state {
	EXEC_FREE,
	EXEC_STARTING,
	EXEC_RUNNING,
	EXEC_DRAINING,
	EXEC_ENDED,
	EXEC_ORPHAN,
};

/* One fd in the loop; epoll always reports a hang-up, so an idle fd is removed from the loop. */
struct exec_end {
	int fd;
	uint8_t kind;
	uint32_t events;
	size_t owed; /* bytes in the pipe when the program exited */
};

struct exec_conn {
	uint32_t id;	/* of the stream; 0: the slot is free */
	struct exec *e; /* NULL before the first frame and after the last */
	bool begun;	/* STARTED or ATTACHED is in the queue */
	bool last;	/* so is the frame that ends the stream */
	bool acks;	/* the client acknowledges data */
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
	struct exec_conn *conn; /* NULL: no client */
	bool detached, tty, eof_wanted, eof_seen;
	bool parked; /* its client was detached and is awaited */
	pid_t pid;
	int wait_status;
	uint64_t ended_ms;
	char name[EXEC_MAX_SESSION + 1]; /* "" unless it is kept */
	uint8_t token[EXEC_TOKEN];
	uint64_t serial; /* in order of their exits */
	uint16_t rows, cols;
	struct exec_ring ring;
	struct screen screen; /* of a kept session, at the ring's base */
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
