/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_chan - the messages between the vault and its peers.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg; the asker chooses the header's id. The channel that sbxd
 *          started the vault with is OWNER. A channel that the OWNER passed with CHANNEL is
 *          SANDBOX, bound to one id; values leave there only. A connection to the socket can become
 *          ADMIN only.
 *          message    direction       phase             fd        fields
 *          HELLO      vault -> peer   START > ROLE, OWNER, SANDBOX  -  build id
 *          ADMIN      peer -> vault   ROLE > ADMIN      -         -
 *          CHANNEL    peer -> vault   OWNER             a channel  sandbox id
 *          SET        peer -> vault   ADMIN, OWNER      a pipe    struct vault_meta
 *          SET_REF    peer -> vault   ADMIN, OWNER      -         vault_meta, vault_ref
 *          REMOVE     peer -> vault   ADMIN, OWNER      -         name, scope
 *          UNLOCK     peer -> vault   ADMIN, OWNER      a pipe    -, the passphrase is in the pipe
 *          SCAN       peer -> vault   ADMIN, OWNER      a file    a control, or ""
 *          STOP       peer -> vault   ADMIN, OWNER > END  -         -
 *          LIST, STATUS, WATCH  peer -> vault  ADMIN, OWNER, SANDBOX  -  -
 *          RELEASE    peer -> vault   SANDBOX           a stream  name, u64 serial
 *          STORE      peer -> vault   SANDBOX           a pipe    name; a frame and its end in it
 *          ITEM, STATUS_IS, SCANNED  vault -> peer  per LIST (many), STATUS, SCAN  -  vault_*
 *          CHANGED    vault -> peer   after WATCH       -         u64 generation
 *          DONE       vault -> peer   last, per question  -       struct vault_done
 * Trust    The vault believes no peer; values are in no message, only in pipes and streams.
 * Limits   VAULT_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, vault_frame.h, vault_scanned.h, vault_chan_test.c, vault_chan_fuzz.c
 */
#pragma once

#include "vault_item.h"

#define VAULT_MAX_PENDING 16 /* questions of one peer without DONE; more are left in the socket */

enum vault_msg {
	VAULT_HELLO = CHAN_HELLO,
	VAULT_ADMIN,
	VAULT_CHANNEL,
	VAULT_SET,
	VAULT_SET_REF,
	VAULT_REMOVE,
	VAULT_UNLOCK,
	VAULT_LIST,
	VAULT_ITEM,
	VAULT_RELEASE,
	VAULT_WATCH,
	VAULT_CHANGED,
	VAULT_STATUS,
	VAULT_STATUS_IS,
	VAULT_SCAN,
	VAULT_DONE,
	VAULT_STOP,
	VAULT_STORE,
	VAULT_SCANNED,
	VAULT_N_MSGS,
};

enum vault_phase {
	VAULT_PHASE_START,
	VAULT_PHASE_ROLE,
	VAULT_PHASE_ADMIN,
	VAULT_PHASE_OWNER,
	VAULT_PHASE_SANDBOX,
	VAULT_PHASE_END,
	VAULT_N_PHASES,
};

enum vault_from { VAULT_FROM_PEER, VAULT_FROM_VAULT };

extern const struct chan vault_chan;

struct vault_done {
	int32_t code;		   /* 0 or a negative errno */
	uint64_t number;	   /* SET, STORE: serial; RELEASE: serial */
	char text[VAULT_MAX_TEXT]; /* why not */
};

/* vault's side */
int vault_send_item(int sock, uint32_t id, const struct vault_item *item) MUST_CHECK;
int vault_send_changed(int sock, uint64_t generation) MUST_CHECK;
int vault_send_status(int sock, uint32_t id, const struct vault_status *status) MUST_CHECK;
int vault_send_done(int sock, uint32_t id, const struct vault_done *done) MUST_CHECK;

/* peer's side; fds stay the caller's. ADMIN, UNLOCK, LIST, WATCH, STATUS, STOP:
 * chan_send_plain. */
int vault_ask_channel(int sock, const char *sandbox, int fd) MUST_CHECK;
int vault_ask_set(int sock, uint32_t id, const struct vault_meta *meta, int fd) MUST_CHECK;
int vault_ask_set_ref(int sock, uint32_t id, const struct vault_meta *meta,
	const struct vault_ref *ref) MUST_CHECK;
int vault_ask_remove(int sock, uint32_t id, const char *name, const char *scope) MUST_CHECK;
int vault_ask_release(int sock, uint32_t id, const char *name, uint64_t serial, int fd) MUST_CHECK;
int vault_ask_store(int sock, uint32_t id, const char *name, int fd) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. They leave the fd in the message. */
int vault_get_channel(const struct ipc_msg *msg, char sandbox[VAULT_MAX_SCOPE]) MUST_CHECK;
int vault_get_set(const struct ipc_msg *msg, struct vault_meta *ret) MUST_CHECK;
int vault_get_set_ref(const struct ipc_msg *msg, struct vault_meta *ret_meta,
	struct vault_ref *ret_ref) MUST_CHECK;
int vault_get_remove(const struct ipc_msg *msg, char name[VAULT_MAX_NAME],
	char scope[VAULT_MAX_SCOPE]) MUST_CHECK;
int vault_get_item(const struct ipc_msg *msg, struct vault_item *ret) MUST_CHECK;
int vault_get_release(
	const struct ipc_msg *msg, char name[VAULT_MAX_NAME], uint64_t *ret_serial) MUST_CHECK;
int vault_get_store(const struct ipc_msg *msg, char name[VAULT_MAX_NAME]) MUST_CHECK;
int vault_get_changed(const struct ipc_msg *msg, uint64_t *ret_generation) MUST_CHECK;
int vault_get_status(const struct ipc_msg *msg, struct vault_status *ret) MUST_CHECK;
int vault_get_done(const struct ipc_msg *msg, struct vault_done *ret) MUST_CHECK;
