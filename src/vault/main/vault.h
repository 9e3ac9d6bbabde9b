/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault - the state of sbx-vault.
 *
 * How      peer.h has the connections, ask.c their requests, op.h requests that wait, job.h the
 *          programs that sbx-vault-run executes, open.c the key and the sealed file. Each loop_key
 *          has an index and a generation: a stale event finds nothing.
 * Trust    Holds all credentials of the user. Peers are processes of the same uid.
 * See      README, lib/os/ipc/vault_chan.h, vault_test.c
 */
#pragma once

#include "job.h"
#include "op.h"
#include "peer.h"
#include "lib/base/fs/fd.h"
#include "lib/secret/secret/safe.h"

#define VAULT_LISTEN_FD 3
#define VAULT_RUN_FD 4
#define VAULT_OWNER_FD 5
#define VAULT_DIR "/vault"
#define REOPEN_MS 1000

enum vault_ev {
	EV_LISTEN,
	EV_PEER,
	EV_PEER_TIMER,
	EV_OP,
	EV_OP_TIMER,
	EV_JOB,
	EV_JOB_TIMER,
	EV_RUNNER,
	EV_SCAN,
};

struct vault {
	struct loop loop;
	struct peer peers[MAX_PEERS]; /* the first n_peers were used: no other memory is touched */
	size_t n_peers;
	struct store_rate rates[VAULT_MAX_SANDBOXES];
	struct op ops[MAX_OPS];
	struct job jobs[MAX_JOBS];
	uint32_t last_run_id;
	struct book book;
	struct safe safe;
	bool has_safe; /* safe_look succeeded */
	enum vault_state state;
	enum vault_key wanted; /* for a new safe; VAULT_KEY_NONE: the best available */
	uint64_t tried_ms;     /* time of the last attempt to open */
	bool is_floor_due, is_served;
	bool has_owner;		  /* VAULT_OWNER_FD was open at the start */
	enum secret_kind weakest; /* weakest protection of a value's memory so far */
	struct err why;		  /* why it is not READY */
	bool done;
	int status;
};

/* open.c */
void open_start(struct vault *v, const char *dir, bool accept_old);
/* Retries what failed, at most once per REOPEN_MS. */
void open_again(struct vault *v);
void open_on_job(struct vault *v, struct job *j, int how);
int open_with_passphrase(struct vault *v, struct secret *passphrase, struct err *err) MUST_CHECK;
/* Called after each write: stores the generation in the Secret Service. */
void open_remember(struct vault *v);

/* ask.c. ask_take returns 0 if the request was accepted, else -EBADMSG. */
int ask_take(struct vault *v, struct peer *p, struct ipc_msg *msg) MUST_CHECK;
void ask_finish_set(struct vault *v, struct op *op);
void ask_send_value(struct vault *v, struct peer *p, uint32_t id, struct book_entry *e, int fd);

/* login.c: writes the login of a credential of kind PROXY to the connection. */
int login_send(const struct book_entry *e, int fd, struct err *err) MUST_CHECK;
void ask_fill_status(const struct vault *v, struct vault_status *ret);

int vault_selftest(void);

static inline void vault_note_memory(struct vault *v, const struct secret *s)
{
	if (s->map)
		v->weakest = MAX(v->weakest, s->kind);
}
