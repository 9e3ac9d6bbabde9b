/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_view - the staged changes of a sandbox as a list, for whatever shows or selects them.
 *
 * How      stage_view_open gets a new bundle from the sandbox, or opens the bundle of the last
 *          review, and compares it with the workspaces. Items are sorted by class, then by path.
 *          To apply items, set *wanted of each and call stage_view_apply. Nothing is printed.
 * Trust    Paths, targets and diffs are a guest's; all texts here are clean for a terminal.
 * Owns     Everything in struct stage_view, until stage_view_done; the lock of the staged sandbox
 *          (area.h) too, so that a view is what is applied.
 * Limits   As bundle.h.
 * See      plan.h, show.h, cmd_apply.c
 */
#pragma once

#include "lib/client/cli/ui.h"
#include "lib/rules/airlock/textdiff.h"

enum stage_rule {
	STAGE_BY_CLASS, /* applied with its class or by its path */
	STAGE_BY_PATH,	/* applied only by its path */
	STAGE_NEVER,
};

struct stage_change {
	char *path;	       /* relative to the workspace */
	char *shown;	       /* for people: relative with one workspace, else absolute */
	char *target;	       /* of a symbolic link, else NULL */
	const char *workspace; /* its host path */
	const char *guest;     /* path of the workspace in the sandbox */
	const char *class;     /* "plain", "autorun" ... */
	const char *notes;     /* "dependency: a, b", or NULL */
	const char *change;    /* "new", "changed", "deleted" or "mode" */
	enum stage_rule rule;
	uint32_t mode, old_mode; /* equal: the mode does not change, or the file has no mode */
	bool directory;
	bool has_diff;
	bool *wanted; /* false at first; of a STAGE_NEVER item without effect */
	struct plan_step *step;
};

struct stage_view {
	const char *sandbox; /* its name */
	struct stage_change *items;
	size_t n;
	struct stage_parts *parts;
};

struct stage_result {
	size_t n_done, n_skipped;
	size_t n_held; /* not selected */
};

/* `pull`: starts the sandbox if necessary and gets its changes of now. */
int stage_view_open(struct stage_view *v, const char *ref, bool pull, struct problem *p) MUST_CHECK;
void stage_view_done(struct stage_view *v);
#define AUTO_STAGE_VIEW CLEANUP(stage_view_done)

/* The diff of an item with has_diff, in pieces. */
int stage_view_diff(const struct stage_view *v, const struct stage_change *item, textdiff_put *put,
	void *arg, struct err *err) MUST_CHECK;

/* Applies the wanted items and the directories that they require. `tell` gets each item that was
 * skipped because the workspace has changed since then. After this the view is of the past. */
int stage_view_apply(struct stage_view *v, void (*tell)(const char *path, const char *why),
	struct stage_result *ret, struct problem *p) MUST_CHECK;
