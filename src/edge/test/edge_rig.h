/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_rig - for edge_test.c: a real sbx-edge with a keeper and a guest played by the test.
 *
 * How      sbx-edge runs as a child with the keeper's channel as fd 3 and seals itself; with
 *          rig_new_jailed it has its complete jail, else no namespaces. The guest is
 *          lib/wire/wire's server. rig_step moves data for all parties once. Paths select the
 *          guest's behaviour: /echo sends back, /hold reads nothing, /pour sends without end, /late
 *          answers only after the client's end, /refuse resets, /404 answers with 404.
 * Trust    Test program.
 */
#pragma once

#include <sys/types.h>
#include "lib/base/bufq.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/wire/wire/wire.h"

#define RIG_STREAMS 600

struct rig_stream { /* the guest's end */
	uint32_t sid;
	char path[WIRE_MAX_PATH];
	struct bufq q;
	bool ended, closed, reset;
	uint64_t got, sent;
};

struct rig_client { /* the client's end: sends `total` patterned bytes, checks the echo */
	int fd;
	uint64_t total, sent, got;
	bool opened, closed, refused, eof, paused, done_sending;
	uint16_t status;
	enum edge_reason reason;
};

struct rig {
	pid_t pid;
	int keeper, guest_fd;
	struct wire *guest;
	bool deaf; /* the guest neither reads nor writes */
	bool keeper_deaf;
	bool ready, lost;
	char lost_text[EDGE_MAX_TEXT];
	struct edge_ca ca; /* n_saved is 0 until it was received */
	struct rig_stream streams[RIG_STREAMS];
	unsigned n_streams;
	struct rig_client clients[RIG_STREAMS];
	unsigned n_clients;
	uint8_t *out;
	size_t n_out, out_at;
	unsigned n_gone; /* messages GONE, and the id of the last one */
	uint32_t gone;
	unsigned n_ended; /* messages ENDED */
	uint32_t ended;
	void (*on_ask)(void *ctx, const struct ipc_msg *msg); /* net_rig's */
	void *ask_ctx;
};

/* `--first-ms` of every edge that is not jailed; NULL: none. */
extern const char *rig_first_ms;

/* Starts edge; the guest is connected but CONFIG is not sent. */
struct rig *rig_new(char *const *envp);
/* The same through jail_spawn, as the keeper starts it. */
struct rig *rig_new_jailed(void);
void rig_free(struct rig *r);
/* CONFIG and READY. */
void rig_up(struct rig *r);
void rig_config(struct rig *r, uint32_t ready_ms);
/* CONFIG with the CA of an earlier edge. */
void rig_config_saved(struct rig *r, uint32_t ready_ms, const struct edge_ca *ca);
struct rig_client *rig_open(struct rig *r, const char *path, uint64_t total);
/* The same over TCP, as a connection to a published port. */
struct rig_client *rig_open_tcp(struct rig *r, const char *path, uint64_t total);
/* Waits at most ms for an event, then moves all data it can. */
void rig_step(struct rig *r, int ms);
/* Steps until the condition holds; fails the test after 60 s. */
#define rig_until(r, cond)                                                                 \
	do {                                                                               \
		uint64_t _end = clock_mono_ms() + 60000;                                   \
		while (!(cond)) {                                                          \
			rig_step(r, 20);                                                   \
			if (clock_mono_ms() > _end)                                        \
				fail_msg("line %d: never came true: %s", __LINE__, #cond); \
		}                                                                          \
	} while (0)
/* Steps for ms, regardless of events. */
void rig_for(struct rig *r, unsigned ms);
/* Waits for edge's exit, at most 60 s; returns its exit status, or -signal. */
int rig_exit(struct rig *r);
/* Memory of edge by a field of /proc/PID/status (smaps is not readable: edge is not dumpable).
 * RssAnon is private; VmRSS includes the program's text, which many edges share. */
uint64_t rig_memory(const struct rig *r, const char *field);
/* 0 if edge has exited: a violation of the guest may end it between two calls. */
uint64_t rig_memory_or_ended(const struct rig *r, const char *field);
uint8_t rig_pattern(uint64_t i);
