/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_chan - the messages between sbxd and a keeper.
 *
 * How      The first connection is inherited by the keeper as fd 3; later ones come through the
 *          sandbox's keeper.sock. The keeper sends HELLO first, STATE on every change, and answers.
 *          message   direction        answer      fd              fields
 *          HELLO     keeper -> sbxd   -           -               build id, sandbox id, pid, state
 *          STATE     keeper -> sbxd   -           -               struct keeper_state
 *          PING      sbxd -> keeper   STATE       -               -
 *          STREAM    sbxd -> keeper   DONE        the connection  path
 *          STOP      sbxd -> keeper   DONE        -               timeout_ms (0: kill at once)
 *          STATS     sbxd -> keeper   STATS_IS    -               -
 *          POLICY    sbxd -> keeper   -           a table         u8 part
 *          RELOAD    sbxd -> keeper   DONE        -               the sandbox's name
 *          SUSPEND   sbxd -> keeper   DONE        -               - (or SUSPEND_IDLE)
 *          FREEZE    sbxd -> keeper   FROZEN      -               label of a checkpoint (or MEMORY)
 *          PORTS     sbxd -> keeper   PORTS_ARE   -               the whole list to publish
 *          CLAIM     sbxd -> keeper   DONE        -               -: spec.json is to be read again
 *          VAULT     sbxd -> keeper   -           a channel       - (LISTENER: a listening socket)
 *          DONE      keeper -> sbxd   -           -               negative errno or 0, text
 *          FROZEN    keeper -> sbxd   -           -               struct keeper_frozen
 *          PORTS_ARE keeper -> sbxd   -           -               each with its state
 *          STATS_IS  keeper -> sbxd   -           -               struct keeper_stats
 * Trust    Same user on both sides; messages are checked anyway: a keeper may misbehave.
 * Limits   IPC_MAX_BODY.
 * See      proto/PROTOCOL.ipc, keeper_chan_test.c, keeper_chan_fuzz.c, lib/rules/hold/hold_msg.h
 */
#pragma once

#include "chan.h"

#define KEEPER_MAX_ID 32
#define KEEPER_MAX_TEXT 512
#define KEEPER_MAX_PATH 64
#define KEEPER_MAX_BUILD 64
#define KEEPER_MAX_NAME 64

enum keeper_msg {
	KEEPER_HELLO = 1,
	KEEPER_STATE,
	KEEPER_PING,
	KEEPER_STREAM,
	KEEPER_STOP,
	KEEPER_STATS,
	KEEPER_DONE,
	KEEPER_STATS_IS,
	KEEPER_RELOAD,	/* use the last POLICY, read the settings again; DONE when they apply */
	KEEPER_SUSPEND, /* saves memory to the sandbox's directory, then exits */
	KEEPER_FREEZE,	/* what the disks hold now becomes layers that are never written again */
	KEEPER_FROZEN,
	KEEPER_PORTS,
	KEEPER_PORTS_ARE,
	KEEPER_CLAIM, /* to a keeper whose VM belongs to no sandbox yet */
	KEEPER_VAULT, /* a channel to the vault, bound to the sandbox */
	KEEPER_WANT_VAULT,
	KEEPER_POLICY,	     /* one of the two compiled tables (lib/rules/policy/table.h) */
	KEEPER_MEMORY,	     /* as FREEZE, and the memory of the VM is saved beside the layers */
	KEEPER_SUSPEND_IDLE, /* as SUSPEND, if the sandbox is idle; else DONE with -EBUSY */
	KEEPER_LISTENER,     /* a listening socket of a published port */
	KEEPER_HELD,	     /* lib/rules/hold/hold_msg.h */
	KEEPER_UNHELD,
	KEEPER_ANSWER,
	KEEPER_N_MSGS,
};

/* The table of the channel. It has no phases. */
enum keeper_from { KEEPER_FROM_SBXD, KEEPER_FROM_KEEPER };
extern const struct chan keeper_chan;

enum keeper_phase {
	KEEPER_STARTING,
	KEEPER_RUNNING,
	KEEPER_STOPPING,
	KEEPER_STOPPED, /* the last message before it exits; text: the reason, if not requested */
	KEEPER_N_PHASES,
};

/* How this run came to be. */
enum keeper_how {
	KEEPER_HOW_COLD,    /* booted */
	KEEPER_HOW_WARM,    /* from the template's snapshot */
	KEEPER_HOW_RESUMED, /* from its own memory: it was suspended */
	KEEPER_HOW_POOL,    /* a machine that waited */
	KEEPER_N_HOWS,
};

/* Reasons of cold_why that mean that no image is missed. */
#define KEEPER_COLD_ASKED "requested"
#define KEEPER_COLD_OWN "the sandbox was started before and has its own disks"

struct keeper_state {
	enum keeper_phase phase;
	enum keeper_how how;
	bool suspended;	   /* with STOPPED: its memory was kept */
	uint8_t progress;  /* percent of the start */
	uint32_t sessions; /* open streams */
	uint32_t boot_ms;  /* start to ready, 0 before */
	uint32_t qemu_pid;
	uint64_t net_up, net_down; /* bytes to and from servers, of exchanges that have ended */
	bool paused;		   /* the host's disk is full */
	bool stalled;		   /* qemu is stopped by a signal, or the guest does not answer */
	char accel[8];
	char cold_why[128];	    /* why it booted without a snapshot; "" else */
	char text[KEEPER_MAX_TEXT]; /* what is being done, or why it ended */
};

struct keeper_hello {
	char build[KEEPER_MAX_BUILD];
	char id[KEEPER_MAX_ID];
	uint32_t pid;
};

/* Reported by the guest: shown only, no decision depends on them. */
#define KEEPER_MAX_SESSIONS 32
#define KEEPER_MAX_SESSION 32 /* bytes of its name: a-z, 0-9 and - */

enum keeper_session_flag {
	KEEPER_SESSION_ATTACHED = 1,
	KEEPER_SESSION_ENDED = 2,
	KEEPER_SESSION_SIGNALLED = 4, /* value is a signal, else an exit status */
	KEEPER_SESSION_ALL = 7,
};

/* A session in the guest that keeps running without a client (PROTOCOL.exec). */
struct keeper_session {
	char name[KEEPER_MAX_SESSION + 1];
	uint8_t flags, value;
};

struct keeper_stats {
	uint64_t uptime_ms, cpu_ms;
	uint64_t mem_total, mem_available;
	uint64_t disk_total, disk_free;
	uint64_t docker_total, docker_free;
	uint32_t processes;
	uint32_t n_sessions;
	struct keeper_session sessions[KEEPER_MAX_SESSIONS];
};

struct keeper_done {
	int32_t code; /* 0 or a negative errno */
	char text[KEEPER_MAX_TEXT];
};

/* As the API and `inspect` say it. */
const char *keeper_how_name(enum keeper_how how);

#define KEEPER_DISKS 2	      /* root, docker */
#define KEEPER_MAX_LAYER 9999 /* highest number of a layer */
#define KEEPER_MAX_LABEL 33   /* of a checkpoint, with its NUL */

struct keeper_frozen {
	int32_t code;		       /* 0 or a negative errno */
	uint16_t layers[KEEPER_DISKS]; /* number of the highest read-only layer; 0: none */
	uint64_t seq;		       /* of the checkpoint's audit record; 0: no checkpoint */
	uint32_t pause_ms;	       /* from the request to the guest until it continued */
	char label[KEEPER_MAX_LABEL];  /* of the request */
	char text[KEEPER_MAX_TEXT];
};

/* Messages without fields: chan_send_plain. */
int keeper_ask_freeze(int sock, uint32_t id, const char *label, bool memory) MUST_CHECK;
/* FREEZE or MEMORY. */
int keeper_get_freeze(const struct ipc_msg *msg, char label[KEEPER_MAX_LABEL]) MUST_CHECK;
int keeper_send_frozen(int sock, uint32_t id, const struct keeper_frozen *frozen) MUST_CHECK;
int keeper_get_frozen(const struct ipc_msg *msg, struct keeper_frozen *ret) MUST_CHECK;

int keeper_send_hello(int sock, const struct keeper_hello *hello) MUST_CHECK;
int keeper_send_state(int sock, uint32_t id, const struct keeper_state *state) MUST_CHECK;
int keeper_send_done(int sock, uint32_t id, int code, const char *text) MUST_CHECK;
int keeper_send_stats(int sock, uint32_t id, const struct keeper_stats *stats) MUST_CHECK;
int keeper_ask_stop(int sock, uint32_t id, uint32_t timeout_ms) MUST_CHECK;
/* part: enum policy_part. The table stays the caller's. */
int keeper_send_policy(int sock, uint32_t id, uint8_t part, int table) MUST_CHECK;
int keeper_ask_reload(int sock, uint32_t id, const char *name) MUST_CHECK;
/* pass_fd stays the caller's. */
int keeper_ask_stream(int sock, uint32_t id, const char *path, int pass_fd) MUST_CHECK;

/* Decoders: 0, or -EBADMSG when a field is missing, too long, out of range or too many came. */
int keeper_get_hello(const struct ipc_msg *msg, struct keeper_hello *ret) MUST_CHECK;
int keeper_get_state(const struct ipc_msg *msg, struct keeper_state *ret) MUST_CHECK;
int keeper_get_done(const struct ipc_msg *msg, struct keeper_done *ret) MUST_CHECK;
int keeper_get_stats(const struct ipc_msg *msg, struct keeper_stats *ret) MUST_CHECK;
/* The same fields inside another body: the guest's answer to /stats has just them. */
void keeper_put_stats(struct wr *wr, const struct keeper_stats *stats);
int keeper_read_stats(struct slice body, struct keeper_stats *ret) MUST_CHECK;
int keeper_get_stop(const struct ipc_msg *msg, uint32_t *ret_timeout_ms) MUST_CHECK;
int keeper_get_policy(const struct ipc_msg *msg, uint8_t *ret_part) MUST_CHECK;
int keeper_get_reload(const struct ipc_msg *msg, char name[KEEPER_MAX_NAME]) MUST_CHECK;
int keeper_get_stream(const struct ipc_msg *msg, char path[KEEPER_MAX_PATH]) MUST_CHECK;
/* PING and STATS have no fields. */
int keeper_get_nothing(const struct ipc_msg *msg) MUST_CHECK;
