/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepers_internal - shared by the files of keepers. A file uses the files named below its own.
 */
#pragma once

#include "keepers.h"

#define KEEPER_FRESH_MS 2000		     /* a message this recent needs no ping */
#define KEEPER_HELLO_MS clock_limit_ms(5000) /* from spawn to the first state */
#define KEEPER_LEAST_STOP_MS clock_limit_ms(2000)
#define KEEPER_GRACE_MS \
	clock_limit_ms(5000) /* for a keeper that is stopping, or has closed its channel */
#define KEEPER_RETRY_MS 100
#define KEEPER_BIRTH_MS clock_limit_ms(3000) /* from fork to its lock */
#define KEEPER_BURST 64			     /* messages of one keeper before others are handled */

/* pool.c */
void pool_on_state(struct sbxd *d, struct keeper *k);
bool pool_on_done(struct sbxd *d, struct keeper *k, uint32_t ask_id, int code, const char *text);
/* Returns true if the exit needs no further handling. */
bool pool_on_exit(struct sbxd *d, struct keeper *k);

/* ports.c: handles PORTS_ARE; < 0 on a protocol violation. */
int ports_on_message(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* Sends a due list, if the channel has room. */
void ports_push(struct sbxd *d, struct keeper *k);

/* holds.c: HELD and UNHELD; < 0 on a protocol violation. */
int holds_on_held(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
int holds_on_unheld(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* The keeper has exited, or its channel is closed. */
void holds_drop(struct sbxd *d, struct keeper *k);

/* reload.c: at the first HELLO of a keeper that another sbxd started. */
void reload_adopted(struct sbxd *d, struct keeper *k);
/* To a keeper that has just been started: its policy applies before its VM runs. */
void reload_first(struct sbxd *d, struct keeper *k, const struct spec *spec);
int reload_send_policy(
	struct sbxd *d, struct keeper *k, const struct spec *spec, uint32_t ask) MUST_CHECK;
/* Sends a due RELOAD, if the channel has room. */
void reload_push(struct sbxd *d, struct keeper *k);
/* Returns true if this was the answer to a RELOAD. */
bool reload_on_done(struct sbxd *d, struct keeper *k, uint32_t ask_id, int code, const char *text);

/* keeper_adopt.c: tries again to reach an adopted keeper; frees the slot if no process holds its
 * lock. */
void keeper_reconnect(struct sbxd *d, struct keeper *k);

/* keeper_spawn.c: as keeper_spawn, but for the pool: with --pool, and without a registry entry. */
int keeper_spawn_pooled(struct sbxd *d, const struct spec *spec, const struct pool_seat *seat,
	struct err *err) MUST_CHECK;
/* The two directories and spec.json. */
int keeper_make_folders(const struct spec *spec, char **ret_dir, struct err *err) MUST_CHECK;
/* Returns true if a process holds the sandbox's lock. */
bool keeper_lock_is_held(const char *id);
/* Returns true if a process that was started as its keeper, or its child, still has its log open:
 * true from the fork on, before the lock is taken. */
bool keeper_log_is_held(const char *id);

/* keeper_end.c: the process has exited: updates the registry, cleans up, wakes waiting clients. */
void keeper_gone(struct sbxd *d, struct keeper *k);

/* keeper_kill.c: SIGKILL to its group and to qemu; the exit event does the rest. */
void keeper_kill(struct keeper *k);
/* Stores a pidfd for the pid if the process really descends from the keeper. */
void keeper_note_qemu(struct keeper *k, uint32_t pid);

/* keeper_holder.c: the process that holds the lock, for a keeper that cannot be reached: a pidfd,
 * -ESRCH. */
int keeper_find_holder(const char *id, pid_t *ret_pid) MUST_CHECK;

/* keeper_table.c: also finds keepers in the pool. */
struct keeper *keeper_find_any(struct sbxd *d, const char *id);
/* Returns a free slot, stored under id; NULL if the table is full. */
struct keeper *keeper_new(struct sbxd *d, const char *id);
/* -EBUSY if as many VMs run or wait to start as the setting daemon.max-sandboxes permits. */
int keeper_check_room(struct sbxd *d, struct err *err) MUST_CHECK;
void keeper_free(struct sbxd *d, struct keeper *k);
void keeper_close_channel(struct sbxd *d, struct keeper *k);
/* Adds the fds of a slot to the loop. */
int keeper_watch_channel(struct sbxd *d, struct keeper *k) MUST_CHECK;
int keeper_watch_exit(struct sbxd *d, struct keeper *k) MUST_CHECK;
/* Sets the timer for the next due action: another connection attempt, or the kill. */
void keeper_set_timer(struct sbxd *d, struct keeper *k);
