/*
 * exec - programs run for the host: one stream each, PROTOCOL.exec inside.
 *
 * How      A slot goes WAITING (for SPEC) -> STARTING (forked; the status pipe tells) -> RUNNING
 *          -> DRAINING (the program has ended, its output is still coming) -> ENDED (the last
 *          frame is in the queue). A stream that closes early makes it an orphan: hang-up now,
 *          kill after EXEC_KILL_MS, and the slot is kept until then.
 *
 *          Draining: what the program itself wrote is in the pipe when it ends and is always
 *          delivered, however slow the client. A grandchild may hold the pipe for ever (ssh then
 *          hangs) or print a little late (`> >(tee log)`; an immediate close would lose that). So
 *          output goes on until the end of the pipe, or EXEC_SILENCE_MS without a byte, or
 *          EXEC_DRAIN_MS in all; then EXIT is sent and the pipe closed.
 * Trust    The host's frames, checked by exec_frame.h; a violation resets the stream.
 * Owns     The processes' pipes and queues; the processes are reaped by main.c.
 * Limits   EXEC_MAX slots. Each queue is bounded: a slow client stops the program's output, a slow
 *          program stops the client's input.
 * See      proto/PROTOCOL.exec
 */
#pragma once

#include "spawn.h"
#include "lib/base/bufq.h"
#include "lib/loop/loop.h"
#include "lib/wire/wire.h"

#define EXEC_MAX 512
#define EXEC_OUT_QUEUE (128 * 1024)
/* Two frames, so that one can be filled while the other is written. */
#define EXEC_IN_QUEUE (2 * EXEC_MAX_PAYLOAD)
/* Room in the output queue that data never takes: STARTED, ERROR and EXIT always fit. */
#define EXEC_RESERVE 2048
#define EXEC_KILL_MS 2000
#define EXEC_SILENCE_MS 500
#define EXEC_DRAIN_MS 2000

enum exec_state {
	EXEC_FREE,
	EXEC_WAITING,
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

struct exec {
	enum exec_state state;
	uint32_t gen, id; /* id is the stream's, 0 without one */
	bool detached, tty, eof_wanted, eof_seen;
	pid_t pid;
	int wait_status;
	uint64_t ended_ms;
	struct exec_reader reader;
	struct bufq from_host, to_program, to_host;
	struct exec_end status, in, out, err;
	struct loop_timer timer;
};

struct execs {
	struct loop *loop;
	struct wire *wire;
	const struct facts *facts;
	uint32_t n_used;
	struct exec slots[EXEC_MAX];
};

int exec_open(struct execs *x, uint32_t id, uint32_t *ret_idx) MUST_CHECK;
void exec_on_data(struct execs *x, uint32_t idx, struct slice bytes);
ssize_t exec_pull(struct execs *x, uint32_t idx, uint8_t *buf, size_t n);
/* The host has ended its half, or the stream is over. */
void exec_on_end(struct execs *x, uint32_t idx);
void exec_on_close(struct execs *x, uint32_t idx);
/* The session has ended: all streams are gone. */
void exec_drop_all(struct execs *x);

void exec_on_event(struct execs *x, const struct loop_event *ev);
/* True when pid was the program of an exec. */
bool exec_on_exit(struct execs *x, pid_t pid, int wait_status);
