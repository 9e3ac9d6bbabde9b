/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rig - for net_vm_test and trust_vm_test: a real VM whose sbx.net ends in the test instead of
 * edge.
 *
 * How      rig_start boots a template under TCG with sbx-guest, does /setup and plays edge on
 *          sbx.net. rig_run runs a shell script in the guest over sbx.ctl and meanwhile serves the
 *          guest's streams. The port that the guest connects to selects the behaviour of a stream:
 *          enum rig_service. Every path except /may is written into `paths`.
 * Trust    Test program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/bufq.h"
#include "lib/wire/guestapi/exec_frame.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/vm/vmm/vmm.h"
#include "lib/wire/wire/wire.h"

struct CMUnitTest;

#define RIG_BULK (64u << 20)
#define RIG_SLOTS WIRE_NET_STREAMS

enum rig_service {
	RIG_ECHO = 7,
	RIG_SINK = 9,	  /* reads everything, answers with the length */
	RIG_SOURCE = 19,  /* sends RIG_BULK bytes and closes */
	RIG_DAYTIME = 13, /* closes its own direction first, then reads the rest and counts it */
	RIG_HTTP = 80,	  /* answers with the path of the stream */
	RIG_RESET = 99,	  /* resets at the first bytes */
	RIG_STALL = 98,	  /* never reads */
	RIG_REFUSED = 97, /* denied before the connection is made */
	RIG_SILENT = 96,  /* the query about it is never answered */
};

struct rig_stream {
	bool used;
	uint32_t id, service;
	char path[WIRE_MAX_PATH];
	uint64_t taken, to_send; /* bytes of the sink and the source */
	bool ended;		 /* the guest's direction */
	bool done;		 /* no more output once `out` is empty */
	struct bufq out;
};

/* One end of a connection to the VM. */
struct rig_link {
	int fd;
	struct wire *wire;
	uint8_t out[65536];
	size_t at, n;
	bool broken;
};

struct rig {
	struct vmm *vmm;
	int ctl_listen, net_listen, log_fd;
	char dir[64], ctl_path[100], net_path[100];
	struct rig_link ctl, net;
	/* the exec under way, or the small request */
	struct bufq to_guest;
	bool to_guest_over;
	struct exec_reader reader;
	char output[65536];
	size_t n_output;
	int status; /* -1 while it runs */
	bool is_exec, ctl_closed, net_ready;
	uint64_t return_at; /* edge broke; another one follows then, as with the keeper */
	/* edge's side */
	struct rig_stream streams[RIG_SLOTS + 1]; /* the last: see answer_may */
	unsigned n_open, max_open;
	char paths[65536];
	size_t n_paths;
	uint64_t seen;		    /* kinds of vmm's events, a bit each */
	uint64_t boot_ms, setup_ms; /* from the start of qemu */
};

void rig_start(struct rig *r, const char *template, const char *guest, uint64_t memory);
void rig_stop(struct rig *r);
/* Exit status; stdout and stderr are in r->output. */
int rig_run(struct rig *r, const char *script, unsigned timeout_ms);
/* A small request with its body. */
void rig_ask(struct rig *r, const char *path, const struct wr *body, unsigned timeout_ms,
	struct guest_reply *ret);
/* Serves until vmm has reported this event. */
void rig_wait(struct rig *r, enum vmm_event_kind kind, unsigned timeout_ms);
/* /setup, as after each start; the guest must accept it. */
void rig_setup(struct rig *r, struct guest_mounts mounts);
/* /trust; the guest must accept. */
void rig_trust(struct rig *r, const char *ca_pem, char **env, size_t n_env);
/* Edge disconnects and reconnects. */
void rig_net_leave(struct rig *r);
void rig_net_return(struct rig *r);
/* The guest's console output, in r->output. */
void rig_console(struct rig *r);
/* Without SBX_LONG the tests named docker_* do not run. Each prints the line of a skipped test, so
 * that .ci/tally compares them with .ci/absent. */
void rig_leave_docker_out(const struct CMUnitTest *tests, size_t n);
/* Serves both ends for a while. */
void rig_serve(struct rig *r, unsigned ms);
