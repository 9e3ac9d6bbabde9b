/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run - runs programs for the vault: clean environment, own process group, time limit.
 *
 * How      run_start forks and executes; run_next_ended reaps, and kills the group of a late
 *          program. stderr is discarded: programs print secrets in error messages.
 * Trust    Executes sbx-vault-keyring, systemd-creds and the program that the user registered for a
 *          credential (lib/os/program/run_ref.h), as the user. The vault only selects one of them.
 * Owns     Its children, until run_kill_all.
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

/* Returns 0, or a negative errno if it did not start. fd stays the caller's. */
int run_start(struct run_table *t, uint32_t id, const struct run *run, int fd) MUST_CHECK;
/* Returns the next finished one. */
bool run_next_ended(struct run_table *t, uint64_t now_ms, uint32_t *ret_id, int *ret_how);
/* Timeout for poll; -1 if nothing runs. */
int run_wait_ms(const struct run_table *t, uint64_t now_ms);
void run_kill_all(struct run_table *t);
