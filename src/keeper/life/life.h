/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life - the start and the stop of a sandbox, and the reactions to events of qemu.
 *
 * How      STARTING -> RUNNING -> STOPPING -> STOPPED; the process exits with the sandbox.
 * Trust    The guest replies yes or no.
 */
#pragma once

#include "src/keeper/memory/memory.h"

/* start.c: the steps of a start, and their undo. */
/* Returns 1 if a child tests the accelerator; accel.c calls start_go_on then. */
int start_prepare(struct keeper *k, struct err *err) MUST_CHECK;
int start_go_on(struct keeper *k, struct err *err) MUST_CHECK;
/* Starts the other processes of a restored VM. */
int start_helpers(struct keeper *k, struct err *err) MUST_CHECK;
int start_machine(struct keeper *k, struct err *err) MUST_CHECK;
void start_undo(struct keeper *k);
void start_on_ready(struct keeper *k); /* edge reaches the guest: sends /setup */
extern const struct ask_kind start_setup_ask;
/* The guest has installed the CA, or cannot: the sandbox runs. */
void start_on_trusted(struct keeper *k);
void start_on_timeout(struct keeper *k);
/* The VM continues after a pause: restarts the timeout of the start. */
void start_give_time(struct keeper *k);

int start_network(struct keeper *k, struct err *err) MUST_CHECK;
/* Undoes the start and boots. */
void start_boot(struct keeper *k);

/* vm_events.c */
void vm_on_event(struct keeper *k, const struct vmm_event *ev);
void machine_on_qemu_end(struct keeper *k);
void machine_on_share_end(struct keeper *k);

/* stop.c */
void stop_begin(struct keeper *k, uint32_t timeout_ms, const char *why);
void stop_on_timeout(struct keeper *k);
void stop_finish(struct keeper *k, const char *why);
