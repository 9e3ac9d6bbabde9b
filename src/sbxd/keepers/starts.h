/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starts - the limit of sandboxes that start at the same time, and the queue of the others.
 *
 * How      A start with a free place begins at once. Others wait in the order of their requests,
 *          without a keeper: starts_look begins the next ones when a sandbox is running or has
 *          stopped. The start timeout of a client counts from the real start. A stop or the removal
 *          of the sandbox removes its waiting start. Until the start begins, the file `last` has
 *          the reason that keeper_gone reports, so that the next sbxd knows why it never ran.
 * Trust    Internal.
 * Limits   The setting daemon.max-starts (default: two for each CPU). Waiting starts count for
 *          daemon.max-sandboxes.
 * Never    Makes a VM of the pool wait, or a start by a connection (wake.h).
 * See      tests/api/test_starts.py, docs/scale.md
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/rules/spec/spec.h"

#define STARTS_PER_CPU 2
#define STARTS_MAX_MS clock_limit_ms(300000) /* a longer start has lost its place */

struct start_wait {
	char id[SPEC_ID_LEN + 1];
	enum spec_accel wish;
	bool cold;
};

/* Starts the sandbox now. */
typedef int start_fn(
	struct sbxd *d, const char *id, enum spec_accel wish, bool cold, struct err *err);

struct starts {
	start_fn *begin;
	size_t most; /* by default */
	struct start_wait list[KEEPER_MAX];
	size_t n;
	bool is_looking;
};

/* Before sbxd seals itself: counts the CPUs. */
void starts_init(struct starts *s, start_fn *begin);
/* Returns true if a start now has to wait. */
bool starts_must_wait(struct sbxd *d);
/* Adds a start to the end of the queue. */
int starts_add(struct sbxd *d, const char *id, enum spec_accel wish, bool cold,
	struct err *err) MUST_CHECK;
/* Its place in the queue, from 1; 0 if it does not wait. */
size_t starts_place(const struct starts *s, const char *id);
/* Removes a waiting start. Returns false if there is none. Wakes no client. */
bool starts_drop(struct sbxd *d, const char *id);
/* Begins the starts that have a place now. */
void starts_look(struct sbxd *d);
