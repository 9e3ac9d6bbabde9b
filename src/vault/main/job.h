/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - programs that sbx-vault-run executes for the vault.
 *
 * How      job_start and job_fetch start a program; its output is read from a pipe. open_on_job and
 *          op_on_fetched get the result.
 * Trust    Output of programs that the user chose. Handles credentials.
 * Limits   MAX_JOBS, MAX_OUTPUT, KEY_TIMEOUT_MS, FETCH_TIMEOUT_MS.
 */
#pragma once

#include "lib/os/ipc/run_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/secret/secret/book.h"

#define MAX_JOBS 8
#define MAX_OUTPUT (2 * VAULT_MAX_VALUE + 4096) /* a docker answer may be all escapes */
#define KEY_TIMEOUT_MS 15000
#define FETCH_TIMEOUT_MS 30000

struct vault;

enum job_kind {
	JOB_FREE,
	JOB_KEY_GET,
	JOB_KEY_PUT,
	JOB_UNSEAL_CREDS,
	JOB_SEAL_CREDS,
	JOB_FLOOR,
	JOB_FETCH
};

struct job {
	enum job_kind kind;
	uint32_t gen;
	uint32_t run_id;
	int fd;
	bool is_too_long;
	uint64_t serial; /* FETCH: of the credential */
	struct secret out;
	struct loop_timer timer;
};

int job_start(struct vault *v, enum job_kind kind, const struct run *run, struct slice input,
	uint64_t serial, struct err *err) MUST_CHECK;
bool job_is_fetching(const struct vault *v, uint64_t serial);
int job_fetch(struct vault *v, struct book_entry *e, struct err *err) MUST_CHECK;
void job_on_event(struct vault *v, const struct loop_event *ev);
void job_on_timer(struct vault *v, struct loop_key key);
void job_on_runner(struct vault *v);
