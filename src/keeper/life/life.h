/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life - the start and the end of a sandbox, and what qemu's events lead to.
 *
 * How      STARTING -> RUNNING -> STOPPING -> STOPPED; the process ends with the sandbox.
 * Trust    The guest answers only yes or no.
 */
#pragma once

#include "src/keeper/memory/memory.h"

/* start.c: the steps from nothing to a booting machine, and their undo. */
/* 1: accel.h decides meanwhile, and calls start_go_on. */
int start_prepare(struct keeper *k, struct err *err) MUST_CHECK;
int start_go_on(struct keeper *k, struct err *err) MUST_CHECK;
/* What a restored machine needs besides qemu. */
int start_helpers(struct keeper *k, struct err *err) MUST_CHECK;
int start_machine(struct keeper *k, struct err *err) MUST_CHECK;
void start_undo(struct keeper *k);
void start_on_ready(struct keeper *k); /* edge sees the guest: send /setup */
extern const struct ask_kind start_setup_ask;
/* The guest knows the CA, or cannot: it runs. */
void start_on_trusted(struct keeper *k);
void start_on_timeout(struct keeper *k);
/* The machine continues after a pause: the start has all of its time again. */
void start_give_time(struct keeper *k);

int start_network(struct keeper *k, struct err *err) MUST_CHECK;
/* Boots, whatever there was before. */
void start_boot(struct keeper *k);

/* vm_events.c: what their events lead to. */
void vm_on_event(struct keeper *k, const struct vmm_event *ev);
void machine_on_qemu_end(struct keeper *k);
void machine_on_share_end(struct keeper *k);

/* stop.c: the way down. */
void stop_begin(struct keeper *k, uint32_t timeout_ms, const char *why);
void stop_on_timeout(struct keeper *k);
void stop_finish(struct keeper *k, const char *why);
