/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_rig - PID 1's exec code with a host in the same process: no VM, no wire, real programs.
 *
 * How      exec.c and its neighbours run as they are; rig functions stand in for the wire and for
 *          what the child does. A struct peer is a client: it opens a stream, says SPEC or ATTACH,
 *          and is given bytes in pieces. A cut loses what was on the way, as a dead edge does.
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
	/* What came. */
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
	/* What goes. */
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
/* Until *flag or the time is over, which fails. */
void rig_wait(const bool *flag);
void rig_run(unsigned ms);

/* With a name: a kept session on a terminal. tokenless: a client of the old kind. */
void peer_start(struct peer *p, const char *name, bool tokenless, const char *script);
void peer_attach(struct peer *p, const char *name, bool resume);
/* What is kept of a session from p->out_at on. */
void peer_look(struct peer *p, const char *name);
void peer_type(struct peer *p, const char *text);
void peer_frame(struct peer *p, enum exec_type type, struct slice payload);
/* The stream is reset by the host. */
void peer_close(struct peer *p);
/* The wire is gone with all streams; what was on the way is lost. A new one is there. */
void rig_cut(void);
/* Until the text is in what came (the replay included). */
void peer_wait_text(struct peer *p, const char *text);
void peer_done(struct peer *p);
