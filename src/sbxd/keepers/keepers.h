/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepers - the keepers of the running sandboxes, as seen by sbxd.
 *
 * How      A slot is taken when a keeper is spawned (keeper_spawn.c) or found again after a restart
 *          (keeper_adopt.c), and freed when its process has exited. Only the exit makes a sandbox
 *          stopped, not a message. Requests never block. A keeper that has not responded for
 *          KEEPER_PATIENCE_MS is silent, and its sandbox unresponsive. A stop has a time limit
 *          after which the process is killed (keeper_kill.c). Callbacks: struct keeper_ops.
 * Trust    Keepers run as the same user but may be compromised: the sender of an invalid message is
 *          killed.
 * Owns     The channel and the pidfds. Keepers keep running when sbxd exits.
 * Limits   The setting daemon.max-sandboxes, at most KEEPER_MAX; it stops no adoption.
 * See      lib/os/ipc/keeper_chan.h, tests/rigs/hostile/hostile_keeper.c
 */
#pragma once

#include "autosave.h"
#include "holds.h"
#include "pool.h"
#include "ports.h"
#include "reload.h"
#include "runs.h"
#include "starts.h"
#include "wake.h"

#define KEEPER_PATIENCE_MS clock_limit_ms(300) /* from ping to silent */
#define KEEPER_ANSWER_MS clock_limit_ms(5000)  /* for any question */

struct keeper {
	bool used;
	uint32_t idx, gen;
	int32_t next; /* in its bucket, -1: last */
	char id[SPEC_ID_LEN + 1];
	int sock, pidfd, qemu_pidfd;
	pid_t pid;	  /* 0: not known yet (adopted, not connected) */
	bool child, cold; /* of this sbxd: to be reaped; was requested to boot */
	bool has_hello, has_state, is_counted; /* its start is in runs */
	struct keeper_state state;
	uint64_t born_ms, last_word_ms;
	uint64_t ping_ms;		    /* since when an answer is awaited; 0: none */
	uint64_t silent_wall_ms;	    /* since when, for users */
	uint64_t kill_at_ms, stop_asked_ms; /* 0: no kill scheduled */
	bool asked_stop, removing;
	bool seeking, broken;	/* adopted, without a channel yet; violated its protocol */
	uint64_t used_stamp_ms; /* wall clock, as last written to the registry */
	bool other_build;	/* may be older and lack some messages */
	struct {
		uint64_t want, sent, done; /* numbers of changes: see reload.h */
		uint32_t ask;		   /* under way, 0: none */
		char why[160];		   /* its error for the last one */
	} reload;
	struct keeper_ports *ports; /* its last report; NULL: none yet. See ports.h */
	bool ports_due;		    /* the list must be sent */
	struct keeper_holds *holds; /* NULL: none yet. See holds.h */
	bool wants_vault;	    /* waits for a channel: see vault_channels.c */
	uint64_t vault_given_ms;    /* when it got the last one */
	struct pool_seat pool;
	struct loop_timer timer;
	struct {
		struct loop_timer timer; /* of checkpoint.every */
		bool is_seen;		 /* the timer was set, if the setting is */
		char label[KEEPER_MAX_LABEL];
	} autosave; /* the last automatic checkpoint that was requested: see autosave.h */
};

/* Callbacks for keepers. `ask` is the number of the request (keeper_next_ask). */
struct keeper_ops {
	/* The state of the sandbox that clients see has changed. */
	void (*on_change)(struct sbxd *d, const char *id);
	void (*on_done)(struct sbxd *d, const struct keeper *k, uint32_t ask,
		const struct keeper_done *done);
	/* Returns < 0 if the keeper violates the protocol. */
	int (*on_stats)(struct sbxd *d, const struct keeper *k, uint32_t ask,
		const struct keeper_stats *stats);
	void (*on_frozen)(struct sbxd *d, const struct keeper *k, uint32_t ask,
		const struct keeper_frozen *frozen);
	void (*on_ports)(struct sbxd *d, struct keeper *k, uint32_t ask);
	void (*on_hold)(struct sbxd *d, const struct keeper *k, const struct held *h, bool gone);
	void (*on_want_vault)(struct sbxd *d, struct keeper *k);
};

struct keepers {
	const struct keeper_ops *ops;
	struct keeper *slot[KEEPER_MAX]; /* n_slots of them exist, until sbxd exits */
	size_t n_slots;
	int32_t bucket[KEEPER_MAX];
	uint32_t next_ask;
	uint64_t n_reloads;
	struct runs runs;
};

void keepers_init(struct keepers *ks, const struct keeper_ops *ops);
/* Closes the channels; the keepers continue. */
void keepers_done(struct sbxd *d);
/* After a start of sbxd: finds running keepers, notes dead ones. */
int keepers_adopt(struct sbxd *d, struct err *err) MUST_CHECK;
void keeper_on_message(struct sbxd *d, const struct loop_event *ev);
void keeper_on_exit(struct sbxd *d, const struct loop_event *ev);
void keeper_on_timer(struct sbxd *d, const struct loop_event *ev);

/* The key of an event of this keeper, and the keeper of an event; NULL if it has exited. */
struct loop_key keeper_key(struct sbxd *d, const struct keeper *k, enum sbxd_ev kind);
struct keeper *keeper_at(struct sbxd *d, struct loop_key key);
/* Not an unclaimed one of the pool. */
struct keeper *keeper_find(struct sbxd *d, const char *id);
bool keeper_is_pooled(const struct keeper *k);
/* Belongs to a sandbox: not free, and not in the pool. */
bool keeper_is_owned(const struct keeper *k);
/* Creates directories and spec.json and starts the program. cold: boot in any case. */
int keeper_spawn(struct sbxd *d, const struct spec *spec, bool cold, struct err *err) MUST_CHECK;
/* Requests a stop, and kills the keeper if it takes too long. */
void keeper_stop(struct sbxd *d, struct keeper *k, uint64_t timeout_ms);
/* Pings if its last message is old and no ping is pending. */
void keeper_freshen(struct keeper *k);
/* An answer is awaited and has not timed out. */
bool keeper_is_pending(const struct keeper *k);
const char *keeper_status(const struct keeper *k);
void keeper_detail(const struct keeper *k, char *buf, size_t size);
uint32_t keeper_next_ask(struct sbxd *d);
