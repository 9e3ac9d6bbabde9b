/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault - the one struct of sbx-vault and who does what to it.
 *
 * How      peer.c has the connections, ask.c their questions, op.c what waits for a pipe or a
 *          program, job.c programs that sbx-vault-run executes, open.c the key and the sealed file.
 *          Indexes and generations in every loop_key: a stale event finds nothing.
 * Trust    Holds all credentials of the user. Peers are processes of the same uid.
 * Limits   VAULT_MAX_SANDBOXES channels, one for each sandbox; MAX_CALLERS connections; MAX_OPS,
 *          MAX_JOBS; a peer has VAULT_MAX_PENDING questions open; STORE_BURST, VAULT_STORE_PER_S.
 * See      README, lib/os/ipc/vault_chan.h, vault_test.c
 */
#pragma once

#include "lib/base/bucket.h"
#include "lib/base/fs/fd.h"
#include "lib/os/ipc/run_chan.h"
#include "lib/os/ipc/vault_scanned.h"
#include "lib/os/loop/loop.h"
#include "lib/secret/secret/safe.h"

struct scan;

#define VAULT_LISTEN_FD 3
#define VAULT_RUN_FD 4
#define VAULT_OWNER_FD 5
#define VAULT_DIR "/vault"

#define MAX_CALLERS 64 /* connections to the socket, and the owner's channel */
#define MAX_PEERS (VAULT_MAX_SANDBOXES + MAX_CALLERS)
#define MAX_OPS 64
#define MAX_PIPES 8 /* values of the user that are being read, each in locked memory */
/* STOREs of one sandbox in a row, then VAULT_STORE_PER_S: each one writes the sealed file. */
#define STORE_BURST VAULT_MAX_TOKENS
#define MAX_JOBS 8
#define MAX_OUTPUT (2 * VAULT_MAX_VALUE + 4096) /* a docker answer may be all escapes */
#define PIPE_TIMEOUT_MS 15000
#define KEY_TIMEOUT_MS 15000
#define FETCH_TIMEOUT_MS 30000
#define SCAN_TIMEOUT_MS (5 * 60000)
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

struct due {
	bool is_status;
	uint32_t id;
	struct vault_done done;
	struct vault_scanned *scanned; /* or NULL; on the heap */
};

struct peer {
	int fd; /* -1: a free slot */
	uint32_t gen;
	enum vault_phase phase;
	char sandbox[VAULT_MAX_SCOPE]; /* of SANDBOX, else "" */
	unsigned n_ops;
	struct due due[VAULT_MAX_PENDING]; /* answers that the socket did not take */
	unsigned n_due;
	bool is_listing;
	uint32_t list_id;
	uint64_t list_after;
	bool is_watching, is_changed_due;
	bool is_paused; /* it has sent more STOREs than it may: the next ones wait in its socket */
	struct loop_timer timer;
};

enum op_kind { OP_FREE, OP_SET, OP_UNLOCK, OP_RELEASE, OP_SCAN };

/* A question that cannot be answered yet. */
struct op {
	enum op_kind kind;
	uint32_t gen;
	uint32_t peer, peer_gen;
	uint32_t id;
	int fd; /* SET, UNLOCK: the pipe; RELEASE: the stream; SCAN: the file */
	struct vault_meta meta;
	uint64_t serial; /* RELEASE: what is being fetched */
	uint64_t until_ms;
	/* SCAN */
	char control[VAULT_MAX_CONTROL + 1];
	bool is_file; /* read from `at` to `end`, holes left out */
	off_t at, end;
	struct scan *scan;
	struct secret bytes;
	struct loop_timer timer;
};

enum job_kind {
	JOB_FREE,
	JOB_KEY_GET,
	JOB_KEY_PUT,
	JOB_UNSEAL_CREDS,
	JOB_SEAL_CREDS,
	JOB_FLOOR,
	JOB_FETCH
};

/* A program that runs for us. */
struct job {
	enum job_kind kind;
	uint32_t gen;
	uint32_t run_id;
	int fd;
	bool is_too_long;
	uint64_t serial; /* FETCH: for which credential */
	struct secret out;
	struct loop_timer timer;
};

/* Of a sandbox, whatever its channels are. */
struct store_rate {
	char sandbox[VAULT_MAX_SCOPE];
	struct bucket bucket;
};

struct vault {
	struct loop loop;
	struct peer peers[MAX_PEERS];
	struct store_rate rates[VAULT_MAX_SANDBOXES];
	struct op ops[MAX_OPS];
	struct job jobs[MAX_JOBS];
	uint32_t last_run_id;
	struct book book;
	struct safe safe;
	bool has_safe; /* safe_look was happy */
	enum vault_state state;
	enum vault_key wanted; /* for a new safe; VAULT_KEY_NONE: the best there is */
	uint64_t tried_ms;     /* when opening was tried last */
	bool is_floor_due, is_served;
	bool has_owner;		  /* VAULT_OWNER_FD was open at the start */
	enum secret_kind weakest; /* of the memory of any value so far */
	struct err why;		  /* why it is not READY */
	bool done;
	int status;
};

/* open.c */
void open_start(struct vault *v, const char *dir, bool accept_old);
/* Tries again what failed, unless that was just now. */
void open_again(struct vault *v);
void open_on_job(struct vault *v, struct job *j, int how);
int open_with_passphrase(struct vault *v, struct secret *passphrase, struct err *err) MUST_CHECK;
/* After each writing: the Secret Service remembers the generation. */
void open_remember(struct vault *v);

/* peer.c */
void peer_init(struct vault *v);
/* Whether the starter passed the owner's channel: before any other descriptor can take its
 * number. */
void peer_look_for_owner(struct vault *v);
/* Takes fd: a channel that the owner binds to a sandbox. It replaces an earlier one of the same
 * sandbox. */
void peer_add_sandbox(struct vault *v, const char *sandbox, int fd);
/* From now on peers are heard. */
void peer_serve(struct vault *v);
void peer_on_listen(struct vault *v);
void peer_on_event(struct vault *v, const struct loop_event *ev);
void peer_answer(
	struct vault *v, struct peer *p, uint32_t id, int code, uint64_t number, const char *text);
/* Takes it. */
void peer_answer_scanned(
	struct vault *v, struct peer *p, uint32_t id, struct vault_scanned *scanned);
void peer_answer_status(struct vault *v, struct peer *p, uint32_t id);
void peer_list(struct vault *v, struct peer *p, uint32_t id);
/* To those that the change concerns; scope: "" is every sandbox. */
void peer_tell_changed(struct vault *v, const char *scope);
/* Counts a STORE of the peer; the peer is not heard for a while when it has sent too many. */
void peer_count_store(struct vault *v, struct peer *p);
void peer_on_timer(struct vault *v, struct loop_key key);

/* ask.c: -EBADMSG, or 0 when the question was taken */
int ask_take(struct vault *v, struct peer *p, struct ipc_msg *msg) MUST_CHECK;
void ask_finish_set(struct vault *v, struct op *op);
void ask_send_value(struct vault *v, struct peer *p, uint32_t id, struct book_entry *e, int fd);
void ask_fill_status(const struct vault *v, struct vault_status *ret);

/* op.c */
/* Takes the fd; answers itself when there is no room. NULL then. */
struct op *op_new(struct vault *v, struct peer *p, enum op_kind kind, uint32_t id, int fd);
void op_answer(struct vault *v, struct op *op, int code, uint64_t number, const char *text);
/* As read(2), without waiting. Who passed a pipe has the same open file and can clear O_NONBLOCK
 * again: a pipe is read for ADMIN and OWNER, or when nobody can write to it any more. */
ssize_t op_read_now(int fd, void *p, size_t n) MUST_CHECK;
/* Takes it. */
void op_answer_scanned(struct vault *v, struct op *op, struct vault_scanned *scanned);
void op_drop_peer(struct vault *v, uint32_t peer);
void op_on_event(struct vault *v, const struct loop_event *ev);
void op_on_timer(struct vault *v, struct loop_key key);
/* Those that wait for this credential: its value is there, or it is not (why). */
void op_on_fetched(struct vault *v, uint64_t serial, int code, const char *why);

/* job.c */
int job_start(struct vault *v, enum job_kind kind, const struct run *run, struct slice input,
	uint64_t serial, struct err *err) MUST_CHECK;
bool job_is_fetching(const struct vault *v, uint64_t serial);
int job_fetch(struct vault *v, struct book_entry *e, struct err *err) MUST_CHECK;
void job_on_event(struct vault *v, const struct loop_event *ev);
void job_on_timer(struct vault *v, struct loop_key key);
void job_on_runner(struct vault *v);

/* scan.c */
void scan_step(struct vault *v, struct op *op);

int vault_selftest(void);

static inline void vault_note_memory(struct vault *v, const struct secret *s)
{
	if (s->map)
		v->weakest = MAX(v->weakest, s->kind);
}
