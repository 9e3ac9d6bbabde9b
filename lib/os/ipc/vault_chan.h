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

#include "chan.h"

#define VAULT_MAX_NAME 64
#define VAULT_MAX_SCOPE 64
#define VAULT_MAX_HOSTS 1024
#define VAULT_MAX_HEADER 64
#define VAULT_MAX_FORMAT 128
#define VAULT_MAX_ENV 128
#define VAULT_MAX_SENTINEL 256
#define VAULT_MAX_PROGRAM 512
#define VAULT_MAX_ARG 512
#define VAULT_MAX_ARGS 16
#define VAULT_MAX_TEXT 256
#define VAULT_MAX_MASK 8
#define VAULT_MAX_VALUE 65536
#define VAULT_MAX_TOKEN 16384 /* what STORE may keep */
#define VAULT_MAX_TOKENS 64   /* of one sandbox */
#define VAULT_STORE_PER_S 4   /* of one sandbox, after VAULT_MAX_TOKENS in a row */
#define VAULT_MAX_SANDBOXES 1024
#define VAULT_MAX_REFRESH_S (30U * 86400)
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

enum vault_kind { VAULT_SERVICE, VAULT_CUSTOM, VAULT_N_KINDS };

/* A credential without its value. The slot of a service is in its data file, so only a custom
 * credential has hosts, header and format. All texts are printable ASCII. */
struct vault_meta {
	char name[VAULT_MAX_NAME];   /* vault_name_is_good */
	char scope[VAULT_MAX_SCOPE]; /* "": all sandboxes; else the id of one */
	enum vault_kind kind;
	char hosts[VAULT_MAX_HOSTS];   /* separated by spaces */
	char header[VAULT_MAX_HEADER]; /* the slot */
	char format[VAULT_MAX_FORMAT]; /* "Bearer %s" */
	char env[VAULT_MAX_ENV];       /* variables of the guest, separated by spaces */
	char sentinel[VAULT_MAX_SENTINEL];
};

enum vault_ref_kind {
	VAULT_REF_NONE,	      /* the value itself is kept */
	VAULT_REF_DOCKER,     /* a docker-credential program: `get`, args[0] is the server's URL */
	VAULT_REF_FIRST_LINE, /* of the command's output */
	VAULT_REF_WHOLE,
	VAULT_N_REFS,
};

/* Where a value comes from that is not kept. */
struct vault_ref {
	enum vault_ref_kind kind;
	char program[VAULT_MAX_PROGRAM]; /* absolute path */
	uint8_t n_args;
	char args[VAULT_MAX_ARGS][VAULT_MAX_ARG];
	uint32_t refresh_s; /* how long a value may be used; 0: requested each time */
};

struct vault_item {
	struct vault_meta meta;
	enum vault_ref_kind ref;
	char program[VAULT_MAX_PROGRAM]; /* of a reference */
	uint32_t refresh_s;
	uint64_t serial; /* another one after each SET */
	uint64_t created_ms, changed_ms, used_ms;
	/* What may be shown: "sk-" and "abcd" of sk-...abcd; both empty for a short value. */
	char mask_head[VAULT_MAX_MASK], mask_tail[VAULT_MAX_MASK];
};

/* Where the key of the sealed file is. */
enum vault_key {
	VAULT_KEY_NONE, /* nothing is sealed yet, or it cannot be read */
	VAULT_KEY_FILE,
	VAULT_KEY_SECRET_SERVICE,
	VAULT_KEY_SYSTEMD_CREDS,
	VAULT_KEY_PASSPHRASE,
	VAULT_N_KEYS,
};

enum vault_state { VAULT_OPENING, VAULT_READY, VAULT_LOCKED, VAULT_FAILED, VAULT_N_STATES };

enum vault_memory {
	VAULT_MEMORY_HIDDEN,
	VAULT_MEMORY_LOCKED,
	VAULT_MEMORY_PLAIN,
	VAULT_N_MEMORIES
};

struct vault_status {
	enum vault_state state;
	enum vault_key key;
	enum vault_memory memory; /* the weakest of all values */
	uint16_t n_items;
	uint64_t generation;
	char text[VAULT_MAX_TEXT]; /* one sentence for people */
};

struct vault_done {
	int32_t code;		   /* 0 or a negative errno */
	uint64_t number;	   /* SET, STORE: serial; RELEASE: serial */
	char text[VAULT_MAX_TEXT]; /* why not */
};

/* Letters, digits and ._:-, beginning with a letter or digit. */
bool vault_name_is_good(const char *name);
/* NAME.access or NAME.refresh of a service: what a sandbox may STORE. */
bool vault_name_is_token(const char *name);
/* "a file in the same directory", ... */
const char *vault_key_text(enum vault_key key);
const char *vault_memory_text(enum vault_memory memory);

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

/* The fields inside other bytes: the sealed file uses them too. Bad ones make rd bad. */
void vault_put_meta(struct wr *wr, const struct vault_meta *meta);
void vault_read_meta(struct rd *rd, struct vault_meta *ret);
void vault_put_ref(struct wr *wr, const struct vault_ref *ref);
void vault_read_ref(struct rd *rd, struct vault_ref *ret);
