/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_rig - for edge_test.c: a real sbx-edge between a keeper and a guest played by the test.
 *
 * How      sbx-edge runs as a child with the keeper's channel as fd 3 and seals itself; with
 *          rig_new_jailed it is in all of its jail, else the namespaces are left out. The guest
 *          is lib/wire/wire's server. rig_step moves bytes for everybody once. Paths tell the guest
 *          what to do: /echo sends back, /hold takes nothing, /pour sends without end, /late
 *          answers only after the client's end, /refuse resets, /404 says so.
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

struct rig_client { /* the command line's end: sends `total` patterned bytes, checks the echo */
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
	bool deaf; /* the guest reads nothing and writes nothing */
	bool keeper_deaf;
	bool ready, lost;
	char lost_text[EDGE_MAX_TEXT];
	struct edge_ca ca; /* n_saved is 0 until it was said */
	struct rig_stream streams[RIG_STREAMS];
	unsigned n_streams;
	struct rig_client clients[RIG_STREAMS];
	unsigned n_clients;
	uint8_t *out;
	size_t n_out, out_at;
	void (*on_ask)(void *ctx, const struct ipc_msg *msg); /* net_rig's */
	void *ask_ctx;
};

/* `--first-ms` of every edge that is not jailed; NULL: none. */
extern const char *rig_first_ms;

/* Starts edge; the guest is there but CONFIG is not sent. */
struct rig *rig_new(char *const *envp);
/* The same through jail_spawn, as the keeper starts it. */
struct rig *rig_new_jailed(void);
void rig_free(struct rig *r);
/* CONFIG and READY. */
void rig_up(struct rig *r);
void rig_config(struct rig *r, uint32_t ready_ms);
/* CONFIG with the CA of an edge before. */
void rig_config_saved(struct rig *r, uint32_t ready_ms, const struct edge_ca *ca);
struct rig_client *rig_open(struct rig *r, const char *path, uint64_t total);
/* The same over TCP, as a connection to a published port. */
struct rig_client *rig_open_tcp(struct rig *r, const char *path, uint64_t total);
/* Waits at most ms for something, then moves what can be moved. */
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
/* Steps for so long, whatever happens. */
void rig_for(struct rig *r, unsigned ms);
/* Waits for edge's end, at most 5 s; its exit status, or -signal. */
int rig_exit(struct rig *r);
/* Bytes of edge by a field of /proc/PID/status (smaps is not for us: edge is not dumpable): RssAnon
 * is its own, VmRSS has the program's text too, which many edges share. */
uint64_t rig_memory(const struct rig *r, const char *field);
/* 0 when edge has ended: what a guest does wrong may end it between two looks. */
uint64_t rig_memory_or_ended(const struct rig *r, const char *field);
uint8_t rig_pattern(uint64_t i);
