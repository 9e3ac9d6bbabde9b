/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run - programs that are executed for the vault: clean environment, own group, a bound in time.
 *
 * How      run_start forks and executes; run_next_ended reaps, and kills the group of what is late.
 *          stderr goes nowhere: it is where programs complain with the secret in the sentence.
 * Trust    Executes sbx-vault-keyring, systemd-creds, and what the user registered for a credential
 *          (lib/os/program/run_ref.h), as the user. The vault says which of these, and nothing
 *          else.
 * Owns     Its children; run_kill_all ends them.
 * Limits   RUN_MAX_RUNS.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/os/ipc/run_chan.h"

struct run_table {
	struct {
		pid_t pid; /* 0: a free slot */
		uint32_t id;
		uint64_t until_ms;
		bool is_late;
	} list[RUN_MAX_RUNS];
};

/* 0, or a negative errno when it did not start. fd stays the caller's. */
int run_start(struct run_table *t, uint32_t id, const struct run *run, int fd) MUST_CHECK;
/* The next that is over. */
bool run_next_ended(struct run_table *t, uint64_t now_ms, uint32_t *ret_id, int *ret_how);
/* How long poll may wait; -1 when nothing runs. */
int run_wait_ms(const struct run_table *t, uint64_t now_ms);
void run_kill_all(struct run_table *t);
