/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply - does the steps of a plan in the workspaces, continues them after a crash, undoes them.
 *
 * How      New versions are written to temporary files in the same directories and synced. The
 *          state that the step requires is checked again. renameat2 then creates the path (it must
 *          not exist) or exchanges both files; the file that came out must be the one that was
 *          checked, else the exchange is reverted. The old version is moved to the directory of the
 *          journal (journal.h). Each path has its old or its new version at any time. A killed
 *          apply is recognised by what is in the workspace: a temporary file with the inode number
 *          of the old version means that the exchange was done.
 * Trust    Every path is opened beneath its workspace without following a link. Contents come from
 *          the bundle or from a merge of the review (src/sbx/stage/merge/saved.h), and are compared
 *          with their hash while they are copied.
 * Owns     Nothing after a call.
 * Limits   A file system without RENAME_EXCHANGE and RENAME_NOREPLACE is refused by its error.
 * Not      Modification times are those of the apply, so that make rebuilds.
 * See      plan.h, journal.h, stage_kill_test.c
 */
#pragma once

#include "plan.h"

#define APPLY_GONE ".gone" /* after dir: the versions that an undo has removed; for the caller */
#define APPLY_SYNC_EACH 32 /* more files are synced by one call for the file system */

struct apply {
	const char *dir; /* of the journal; exists */
	const char *tag; /* names temporary files: sandbox and number of the apply */
	const int *roots;
	const struct bundle *bundle; /* NULL to undo */
	const char *merged;	     /* directory of merge results; NULL: none */
	struct known *known;	     /* is updated */
	/* A step that was not done because the workspace has changed, or could not be done. */
	void (*tell)(void *arg, const struct plan_step *s, const char *why);
	void *arg;
	size_t n_done, n_skipped; /* results */
	bool sync_each;		  /* internal: few files */
	int gone;		  /* internal: directory of APPLY_GONE */
};

/* The selected steps of a plan: writes the journal, then does them. */
int apply_run(struct apply *a, const struct plan *p, struct err *err) MUST_CHECK;
/* The steps of a journal that was not finished. */
int apply_continue(struct apply *a, struct err *err) MUST_CHECK;
/* Reverts the steps of a journal, finished or not. Files that changed since the apply are kept. */
int apply_undo(struct apply *a, struct err *err) MUST_CHECK;
