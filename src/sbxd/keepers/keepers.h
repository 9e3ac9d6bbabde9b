/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepers - the keepers of the sandboxes that run, as sbxd sees them.
 *
 * How      A slot is taken when a keeper is spawned (keeper_spawn.c) or found again after a restart
 *          (keeper_adopt.c), and given back when its process has ended: that, not what it says,
 *          makes a sandbox stopped. Everything is asked without waiting; a keeper that was asked
 *          and has not said a word for KEEPER_PATIENCE_MS is silent, and its sandbox unresponsive.
 *          A stop has a time at which the process is killed (keeper_kill.c).
 * Trust    Keepers run as the same user but may be out of their mind: a message that breaks the
 *          rules gets its sender killed.
 * Owns     The channel and the pidfds. Keepers live on when sbxd ends.
 * Limits   KEEPER_MAX.
 * See      lib/os/ipc/keeper_chan.h, tests/api/hostile_keeper.c
 */
#pragma once

#include "lib/base/clock.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/keeper_ports.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/spec/spec.h"
#include "pool.h"

#define KEEPER_MAX 1024
#define KEEPER_FRESH_MS 2000		       /* a word this young needs no ping */
#define KEEPER_PATIENCE_MS clock_limit_ms(300) /* from ping to silent */
#define KEEPER_ANSWER_MS clock_limit_ms(5000)  /* for any question */
#define KEEPER_HELLO_MS clock_limit_ms(5000)   /* from spawn to the first state */
#define KEEPER_LEAST_STOP_MS clock_limit_ms(2000)
#define KEEPER_GRACE_MS \
	clock_limit_ms(5000) /* for one that is at work on its stop, or has closed its channel */
#define KEEPER_RETRY_MS 100
#define KEEPER_BIRTH_MS clock_limit_ms(3000) /* from fork to its lock */
#define KEEPER_BURST 64 /* messages of one keeper before others get their turn */

struct sbxd;

struct keeper {
	bool used;
	uint32_t gen;
	int32_t next; /* in its bucket, -1 at the end */
	char id[SPEC_ID_LEN + 1];
	int sock, pidfd, qemu_pidfd;
	pid_t pid;  /* 0: not known yet (adopted, not connected) */
	bool child; /* of this sbxd: to be reaped */
	bool cold;  /* was told to boot */
	bool has_hello, has_state;
	struct keeper_state state;
	uint64_t born_ms, last_word_ms;
	uint64_t ping_ms;	 /* since when an answer is owed; 0: none is */
	uint64_t silent_wall_ms; /* since when, for people */
	uint64_t kill_at_ms;	 /* 0: not to be killed */
	uint64_t stop_asked_ms;
	bool asked_stop, removing;
	bool seeking;		/* adopted, its channel is not made yet */
	bool broken;		/* it broke the rules of its channel */
	uint64_t used_stamp_ms; /* wall, as last written to the registry */
	bool other_build;	/* it may not know all messages of ours */
	struct {
		uint64_t want, sent, done; /* numbers of changes: see reload.h */
		uint32_t ask;		   /* under way, 0: none is */
		char why[160];		   /* what it said to the last one when that was no */
	} reload;
	struct keeper_ports *ports; /* as it said last; NULL: nothing yet. See ports.h */
	bool ports_due;		    /* it is to be told the list */
	bool wants_vault;	    /* it waits for a channel: see vault_channels.c */
	uint64_t vault_given_ms;    /* when it got the last one */
	struct pool_seat pool;
	struct loop_timer timer;
};

struct keepers {
	struct keeper slot[KEEPER_MAX];
	int32_t bucket[KEEPER_MAX];
	uint32_t next_ask;
};

void keepers_init(struct keepers *ks);
/* Closes the channels; the keepers go on. */
void keepers_done(struct sbxd *d);
/* Not one that waits in the pool: that is nobody's; keeper_find_any finds it too. */
struct keeper *keeper_find(struct sbxd *d, const char *id);
struct keeper *keeper_find_any(struct sbxd *d, const char *id);
/* A free slot, filed under id; NULL when the table is full. */
struct keeper *keeper_new(struct sbxd *d, const char *id);
void keeper_free(struct sbxd *d, struct keeper *k);

/* Makes folders and spec.json and starts the program. cold: it is to boot in any case. */
int keeper_spawn(struct sbxd *d, const struct spec *spec, bool cold, struct err *err) MUST_CHECK;
/* The same for the pool: with --pool, and without a word in the registry. */
int keeper_spawn_pooled(struct sbxd *d, const struct spec *spec, const struct pool_seat *seat,
	struct err *err) MUST_CHECK;
/* The two folders and spec.json. */
int keeper_make_folders(const struct spec *spec, char **ret_dir, struct err *err) MUST_CHECK;
/* After a start of sbxd: finds those that live, notes those that died. */
int keepers_adopt(struct sbxd *d, struct err *err) MUST_CHECK;
/* Tries again to reach an adopted one; gives the slot back when nobody holds its lock. */
void keeper_reconnect(struct sbxd *d, struct keeper *k);
/* True when a process holds the sandbox's lock. */
bool keeper_lock_is_held(const char *id);
/* True when a process that was started as its keeper, or a child of it, still has its log open:
 * from the fork on, when the lock is not taken yet. */
bool keeper_log_is_held(const char *id);

/* keeper_note.c: which process was started as its keeper. */
int keeper_note_save(const char *id, pid_t pid, struct err *err) MUST_CHECK;
/* A pidfd, or -ENOENT without a note, or -ESRCH when the process has ended: *ret_pid is its number
 * in both other cases. */
int keeper_note_open(const char *id, pid_t *ret_pid) MUST_CHECK;
/* The process that holds the lock, for a keeper that cannot be reached: a pidfd, -ESRCH. */
int keeper_find_holder(const char *id, pid_t *ret_pid) MUST_CHECK;

/* Put the fds of a slot into the loop. */
int keeper_watch_channel(struct sbxd *d, struct keeper *k) MUST_CHECK;
int keeper_watch_exit(struct sbxd *d, struct keeper *k) MUST_CHECK;
void keeper_on_message(struct sbxd *d, uint32_t idx, uint32_t gen);
void keeper_on_exit(struct sbxd *d, uint32_t idx, uint32_t gen);
void keeper_on_timer(struct sbxd *d, uint32_t idx, uint32_t gen);

/* Pings when its last word is old and none is owed. */
void keeper_freshen(struct keeper *k);
/* An answer is owed, and there is still hope. */
bool keeper_is_pending(const struct keeper *k);
const char *keeper_status(const struct keeper *k);
void keeper_detail(const struct keeper *k, char *buf, size_t size);
/* It is a sandbox's: not free, and not in the pool. */
bool keeper_is_owned(const struct keeper *k);
uint32_t keeper_next_ask(struct sbxd *d);

/* Asks it to stop, and kills it when it takes too long. */
void keeper_stop(struct sbxd *d, struct keeper *k, uint64_t timeout_ms);
/* SIGKILL to its group and to qemu; the exit event does the rest. */
void keeper_kill(struct keeper *k);
/* Remembers the process behind the pid when it truly descends from the keeper. */
void keeper_note_qemu(struct keeper *k, uint32_t pid);
/* For the next thing that is due: another try to reach it, or its killing. */
void keeper_set_timer(struct sbxd *d, struct keeper *k);
/* The process is gone: notes it in the registry, cleans, wakes who waits. */
void keeper_gone(struct sbxd *d, struct keeper *k);
