/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_rig - PID 1's exec code with a host in the same process: no VM, no wire, real programs.
 *
 * How      exec.c and the files next to it run unchanged; rig functions replace the wire and the
 *          work of the child. A struct peer is a client: it opens a stream, sends SPEC or ATTACH,
 *          and receives data in pieces. A cut loses data in transit, as a dead edge does.
 * Trust    Test code.
 * Limits   RIG_MS for every wait.
 */
#pragma once

#include "src/guest/exec/exec.h"

#define RIG_MS 20000
#define RIG_WINDOW (128 * 1024) /* input that is not acknowledged */

struct peer {
	uint32_t id, idx; /* id 0: no stream */
	bool gone;	  /* the guest has reset it */
	struct exec_reader reader;
	uint8_t token[EXEC_TOKEN];
	/* Received. */
	bool started, attached, exited, over;
	struct exec_attached how;
	enum exec_reason reason;
	uint8_t status;
	bool signalled;
	char error[128];
	uint8_t *out; /* data of STDOUT and STDERR */
	size_t n_out;
	uint64_t out_at; /* frames, with their headers */
	uint64_t acked;
	char *replay;
	size_t n_replay;
	/* To send. */
	const uint8_t *in;
	size_t n_in, in_at;
	uint64_t in_acked;
	bool eof_said, lazy; /* lazy: never reads */
};

struct rig {
	struct loop loop;
	struct execs *x;
	int signals;
	uint32_t next_id;
	struct loop_timer tick;
	struct peer *peers[EXEC_MAX_CONNS];
};

extern struct rig rig;

void rig_begin(void);
void rig_end(void);
/* Waits for *flag; fails on a timeout. */
void rig_wait(const bool *flag);
void rig_run(unsigned ms);

/* With a name: a kept session on a terminal. tokenless: an old client. */
void peer_start(struct peer *p, const char *name, bool tokenless, const char *script);
void peer_attach(struct peer *p, const char *name, bool resume);
/* Requests the kept output of a session from p->out_at on. */
void peer_look(struct peer *p, const char *name);
void peer_type(struct peer *p, const char *text);
void peer_frame(struct peer *p, enum exec_type type, struct slice payload);
/* The stream is reset by the host. */
void peer_close(struct peer *p);
/* The wire fails with all streams; data in transit is lost. A new wire exists. */
void rig_cut(void);
/* Waits until the text was received (also in the replay). */
void peer_wait_text(struct peer *p, const char *text);
void peer_done(struct peer *p);
