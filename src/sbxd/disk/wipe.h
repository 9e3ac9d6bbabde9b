/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wipe - removes the directory of a sandbox in a child process, and then its row.
 *
 * How      Unlinking a large disk takes time, so a forked child does it while the loop keeps
 *          running. On success the marked row is removed; otherwise it stays marked and the next
 *          start of sbxd tries again.
 * Trust    The directory belongs to the user, but symbolic links in it are never followed.
 * Limits   WIPE_MAX at work or waiting, WIPE_AT_ONCE children, WIPE_MAX_DEPTH directories deep.
 * See      tests/api
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/rules/spec/spec.h"

#define WIPE_MAX 1024
#define WIPE_AT_ONCE 4
#define WIPE_MAX_DEPTH 64

struct wipe {
	char id[SPEC_ID_LEN + 1]; /* empty: free */
	int pidfd;		  /* -1: waiting */
	uint32_t gen;
};

struct wipes {
	struct wipe slot[WIPE_MAX];
	unsigned n_running;
};

void wipes_init(struct wipes *ws);
void wipes_done(struct sbxd *d);
/* Whether the sandbox is still being removed. */
bool wipe_is_running(struct sbxd *d, const char *id);
void wipe_start(struct sbxd *d, const char *id);
void wipe_on_exit(struct sbxd *d, const struct loop_event *ev);
/* Removes the small files in the runtime directory of a stopped sandbox. */
void wipe_runtime(const char *id);
/* Its directory and its spec. */
int wipe_sandbox(const char *id) MUST_CHECK;
