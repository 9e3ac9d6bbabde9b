/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_rig - a real vault in a temporary directory: sbx-vault-run, sbx-vault in its jail.
 *
 * How      rig_new creates directories and a listening socket and starts the programs that
 *          SBX_VAULT_PROGRAMS names. rig_admin and rig_keeper are peers; a keeper's channel is
 *          created over r->owner. Every wait has a limit; a failure fails the test.
 * Trust    Tests only.
 */
#pragma once

#include <sys/types.h>
#include "lib/os/ipc/vault_frame.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/ipc/vault_scanned.h"

#define RIG_MAX_ITEMS 300

struct rig {
	char dir[64];
	pid_t pid; /* of sbx-vault-run; 0: none */
	int listener;
	int owner, owner_end; /* our end of sbxd's channel, and the program's until it is started */
	int log;	      /* output of both programs */
};

/* args: of the vault, NULL-terminated. */
struct rig *rig_new(const char *const *args);
void rig_start(struct rig *r, const char *const *args);
/* Kills both, as kill -9 does. */
void rig_kill(struct rig *r);
/* STOP by an admin; returns the exit status. */
int rig_stop(struct rig *r);
/* Waits for the exit; returns the exit status. */
int rig_wait(struct rig *r);
void rig_free(struct rig *r);
pid_t rig_vault_pid(const struct rig *r);
/* On the heap: a file in the vault's state directory. */
char *rig_file(const struct rig *r, const char *name);

/* Connects without reading; rig_connect reads HELLO. */
int rig_knock(struct rig *r);
int rig_connect(struct rig *r);
int rig_admin(struct rig *r);
int rig_keeper(struct rig *r, const char *sandbox);
bool rig_is_dropped(int peer);

/* Requests; each waits for its DONE and returns its code. */
int rig_set(int admin, const char *name, const char *scope, const void *value, size_t n);
int rig_set_str(int admin, const char *name, const char *scope, const char *value);
int rig_set_ref(int admin, const char *name, enum vault_ref_kind kind, const char *program,
	const char *arg, uint32_t refresh_s);
/* STORE of a whole frame; ret_serial may be NULL. */
int rig_store(int keeper, const char *name, const char *value, uint64_t *ret_serial);
int rig_remove(int admin, const char *name, const char *scope);
int rig_unlock(int admin, const char *passphrase);
int rig_scan(int admin, int fd, const char *control, struct vault_scanned *ret);
/* How many there are; items may be NULL. */
size_t rig_list(int peer, struct vault_item *items);
/* Requests the credential with the serial from LIST, or with `serial` if not 0. The frame's value
 * is on the heap and NUL-terminated; NULL if there was none. */
int rig_release(int keeper, const char *name, uint64_t serial, char **ret_value,
	struct vault_frame *ret_frame);
void rig_status(int peer, struct vault_status *ret);
/* The answer to a request that was sent by hand. */
void rig_done(int peer, uint32_t id, struct vault_done *ret);
void rig_next(int peer, struct ipc_msg *ret);

/* The last text of a DONE. */
extern char rig_text[VAULT_MAX_TEXT];
/* The output of the programs so far, on the heap. */
char *rig_log(struct rig *r);
