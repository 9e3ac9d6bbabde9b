/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op - requests that wait for a pipe, a program or a scan.
 *
 * How      op_new stores the request; its event, its timer or op_on_fetched finishes it with
 *          op_answer.
 * Trust    Pipes and files come from peers. Untrusted input.
 * Limits   MAX_OPS, MAX_PIPES, PIPE_TIMEOUT_MS, SCAN_TIMEOUT_MS.
 */
#pragma once

#include "lib/os/ipc/vault_scanned.h"
#include "lib/os/loop/loop.h"
#include "lib/secret/secret/secret.h"

#define MAX_OPS 64
#define MAX_PIPES 8 /* values of the user that are being read, each in locked memory */
#define PIPE_TIMEOUT_MS 15000
#define SCAN_TIMEOUT_MS (5 * 60000)

struct peer;
struct scan;
struct vault;

enum op_kind { OP_FREE, OP_SET, OP_UNLOCK, OP_RELEASE, OP_SCAN };

struct op {
	enum op_kind kind;
	uint32_t gen;
	uint32_t peer, peer_gen;
	uint32_t id;
	int fd; /* SET, UNLOCK: the pipe; RELEASE: the stream; SCAN: the file */
	struct vault_meta meta;
	uint64_t serial; /* RELEASE: the credential that is being fetched */
	uint64_t until_ms;
	/* SCAN */
	char control[VAULT_MAX_CONTROL + 1];
	bool is_file; /* read from `at` to `end`, holes skipped */
	off_t at, end;
	struct scan *scan;
	struct secret bytes;
	struct loop_timer timer;
};

/* Takes the fd. Returns NULL if there is no room; the request is answered then. */
struct op *op_new(struct vault *v, struct peer *p, enum op_kind kind, uint32_t id, int fd);
void op_answer(struct vault *v, struct op *op, int code, uint64_t number, const char *text);
/* As read(2), without waiting. The sender of a pipe has the same open file and can clear O_NONBLOCK
 * again: a pipe is read for ADMIN and OWNER, or if it has no writer left. */
ssize_t op_read_now(int fd, void *p, size_t n) MUST_CHECK;
/* Takes `scanned`. */
void op_answer_scanned(struct vault *v, struct op *op, struct vault_scanned *scanned);
void op_drop_peer(struct vault *v, uint32_t peer);
void op_on_event(struct vault *v, const struct loop_event *ev);
void op_on_timer(struct vault *v, struct loop_key key);
/* Finishes the operations that wait for this credential: with its value, or with `why`. */
void op_on_fetched(struct vault *v, uint64_t serial, int code, const char *why);

/* scan.c: searches the next window. */
void scan_step(struct vault *v, struct op *op);
