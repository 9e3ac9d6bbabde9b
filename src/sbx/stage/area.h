/* SPDX-License-Identifier: Apache-2.0 */
/*
 * area - the staged workspaces of one sandbox and their directory in the state directory.
 *
 * How      sandboxes/ID/stage has the bundle of the last review, its merges
 *          (src/sbx/stage/merge/saved.h), `known` (known.h), and in `undo` a directory per apply,
 *          numbered. One process at a time holds the lock.
 * Trust    The user's own directories. Host paths are opened without following links.
 * Owns     Everything in struct area, until area_done.
 * See      pull.h, apply.h
 */
#pragma once

#include <jansson.h>
#include "lib/client/cli/ui.h"
#include "plan.h"

#define AREA_COUNT_MS 2000

struct area {
	json_t *sandbox;
	const char *name, *id; /* inside sandbox */
	char *dir;
	int lock;
	const char *host[SPEC_MAX_WORKSPACES], *guest[SPEC_MAX_WORKSPACES];
	int roots[SPEC_MAX_WORKSPACES];
	size_t n;
	char *hide[SPEC_MAX_HIDE]; /* inside sandbox */
	size_t n_hide;
	struct known known;
};

int area_open(struct area *a, const char *ref, struct problem *p) MUST_CHECK;
void area_done(struct area *a);
#define AUTO_AREA CLEANUP(area_done)

char *area_path(const struct area *a, const char *name);
/* The number of the last apply that is not undone; 0: none. *ret_open: it was not finished. */
unsigned area_last_apply(const struct area *a, bool *ret_open);
/* -EBUSY and the commands that help, if an apply was not finished. */
int area_require_finished(const struct area *a, struct problem *p) MUST_CHECK;
/* Creates the directory of the next apply. */
int area_next_apply(const struct area *a, unsigned *ret, struct err *err) MUST_CHECK;
/* Removes a directory of files. */
void area_remove(const char *dir);
int area_save_known(const struct area *a, struct err *err) MUST_CHECK;
/* A record in the audit log of the installation: "review", "apply", "undo" or "discard" of `n`
 * changes; b NULL: of no bundle; names NULL: not of named files. Without a record the action must
 * not be done. */
int area_record(const struct area *a, const char *action, const struct bundle *b, size_t n,
	const char *names, struct problem *p) MUST_CHECK;
/* The bundle of the last review. */
int area_bundle(const struct area *a, struct bundle *ret, struct problem *p) MUST_CHECK;
/* The plan of a bundle against the workspaces of now. `fresh`: of a review, which merges conflicts;
 * an apply uses the merges of the review. */
int area_plan(const struct area *a, const struct bundle *b, bool fresh, struct plan *ret,
	struct err *err) MUST_CHECK;
/* The number of changes that an apply could do, and of those in files that run on the host. Reads
 * no content but for hashes; ends after AREA_COUNT_MS. */
int area_count(const struct area *a, const struct bundle *b, size_t *ret_n, size_t *ret_runs,
	struct err *err) MUST_CHECK;
/* The path of a step for people: relative with one workspace, else absolute. The caller frees it.
 * Cleaned for a terminal. */
char *area_show_path(const struct area *a, size_t ws, const char *path);
/* ms since 1970: a host file that is newer was changed by the host. */
long long area_since(const struct area *a);
/* The content of a file of the host, at most PLAN_HUGE bytes. */
int area_load_host(
	const struct area *a, const struct plan_step *s, char **ret, size_t *ret_n) MUST_CHECK;
