/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_item - a credential without its value, a reference, and the state of the vault.
 *
 * How      Structs that the messages of vault_chan.h carry, and their encoding, which the sealed
 *          file uses too. All texts are printable ASCII.
 * Trust    Bytes of a peer or of the sealed file: bad ones make the reader bad.
 * Owns     Nothing.
 * Limits   VAULT_MAX_*.
 * See      vault_chan.h, vault_chan_test.c
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
#define VAULT_MAX_SANDBOXES 4096
#define VAULT_MAX_REFRESH_S (30U * 86400)

/* PROXY: hosts, header and format are HOST:PORT, `http` or `socks5`, and the user. */
enum vault_kind { VAULT_SERVICE, VAULT_CUSTOM, VAULT_PROXY, VAULT_N_KINDS };
#define VAULT_PROXY_NAME "upstream-proxy"

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

/* Letters, digits and ._:-, beginning with a letter or digit. */
bool vault_name_is_good(const char *name);
/* NAME.access or NAME.refresh of a service: what a sandbox may STORE. */
bool vault_name_is_token(const char *name);
/* "a file in the same directory", ... */
const char *vault_key_text(enum vault_key key);
const char *vault_memory_text(enum vault_memory memory);

/* The fields inside other bytes: the sealed file uses them too. Bad ones make rd bad. */
void vault_put_meta(struct wr *wr, const struct vault_meta *meta);
void vault_read_meta(struct rd *rd, struct vault_meta *ret);
void vault_put_ref(struct wr *wr, const struct vault_ref *ref);
void vault_read_ref(struct rd *rd, struct vault_ref *ret);
