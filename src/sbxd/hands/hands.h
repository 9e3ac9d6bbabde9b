/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hands - operations that sbxd cannot do after it is sealed, done by its spawner.
 *
 * How      hands_start forks the spawner (lib/os/worker/spawner.h) before sbxd reads any input.
 *          hands_seal then drops exec, connect and namespaces, sets no_new_privs, and restricts
 *          files to those of sbx with Landlock (JAIL_SBXD, lib/os/jail/broker.h). Each other
 *          function requests one fixed operation from the spawner: start one of our programs with
 *          fixed arguments, send a signal, connect to a socket that is named after a sandbox. sbxd
 *          passes no paths. A process that the spawner starts has its own session and outlives
 *          spawner and sbxd. The spawner itself is not sealed: programs below the vault may be
 *          set-uid.
 * Trust    The spawner treats sbxd as compromised: a request with a wrong kind, id, number or kind
 *          of descriptors stops it, and sbxd with it. It reads sbxd's packets, the settings and
 *          /proc.
 * Owns     In the spawner: the children that were not reaped, and pidfds of the keepers of an
 *          earlier sbxd that it has connected to: the noted ones (keeper_note.c).
 * Limits   SPAWNER_MAX_CHILDREN; one request at a time.
 * Never    Signals a process that is neither a child of the spawner nor a keeper of this
 *          installation nor below one.
 * See      hands_test.c, README, lib/os/worker/worker.h
 */
#pragma once

#include <stdbool.h>
#include "child.h"
#include "src/sbxd/state/state.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/template/layers.h"

enum hands_way { HANDS_WARM, HANDS_COLD, HANDS_POOL, HANDS_N_WAYS };

enum hands_signal { HANDS_TERM, HANDS_KILL, HANDS_KILL_GROUP, HANDS_N_SIGNALS };

/* The class of VMs that a snapshot is for. */
struct hands_image {
	char template[SPEC_MAX_WORD + 1]; /* an id, or a name */
	uint32_t cpus;
	uint64_t memory, disk;
	char accel[8];
};

/* A program that the spawner has started. */
struct hands_child {
	pid_t pid;
	int pidfd;
};

/* Exit status of a process. */
struct hands_end {
	bool was_killed;
	int status; /* or the signal */
};

int hands_start(struct err *err) MUST_CHECK;
int hands_seal(struct err *err) MUST_CHECK;

/* sbx-keeper of a sandbox, with its channel. */
int hands_keeper(const char *id, enum hands_way way, int channel, int log_fd,
	struct hands_child *ret, struct err *err) MUST_CHECK;
/* Starts sbx-keeper to create a snapshot. */
int hands_maker(const struct hands_image *w, int log_fd, struct hands_child *ret,
	struct err *err) MUST_CHECK;
/* sbx-keeper that merges these layers of a stopped sandbox with the next ones. */
int hands_merger(const char *id, const struct layers layers[TEMPLATE_N_DISKS], int log_fd,
	struct hands_child *ret, struct err *err) MUST_CHECK;
/* sbx-vault-run with the vault's socket and its end of our channel. */
int hands_vault(
	int listener, int channel, int log_fd, struct hands_child *ret, struct err *err) MUST_CHECK;
/* sbx-notify with its channel. -ENOENT: the environment has no session bus. */
int hands_notify(int channel, int log_fd, struct hands_child *ret, struct err *err) MUST_CHECK;
/* Returns -EAGAIN while it runs, -ESRCH if this sbxd did not start it, or it was reaped. */
int hands_reap(pid_t pid, struct hands_end *ret) MUST_CHECK;
/* Waits for it, a few seconds at most; after HANDS_KILL. */
void hands_reap_killed(const struct hands_child *c);
/* Signalling an exited process is not an error. */
void hands_signal(int pidfd, enum hands_signal signal);
/* With its group, and its qemu (-1: none). */
void hands_kill_keeper(int pidfd, int qemu_pidfd);
/* A keeper of an earlier sbxd has exited: its children are killed. */
void hands_kill_rest(const char *id);
/* jail_cgroup_sweep: the groups of keepers that were killed. */
void hands_sweep(void);
/* A connection to the keeper of the sandbox, or to the vault (-ECONNREFUSED: no listener). */
int hands_to_keeper(const char *id, struct err *err) MUST_CHECK;
int hands_to_vault(struct err *err) MUST_CHECK;

/* keeper_note.c: which process was started as the keeper of a sandbox. */
int keeper_note_save(const char *id, pid_t pid, struct err *err) MUST_CHECK;
/* Returns a pidfd, -ENOENT without a note, or -ESRCH if the process has exited. *ret_pid is its
 * number except for -ENOENT. */
int keeper_note_open(const char *id, pid_t *ret_pid) MUST_CHECK;
