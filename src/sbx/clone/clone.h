/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone - a git repository of the host as a clone on the disk of a sandbox, and the way back.
 *
 * How      clone_check looks at the repository before the sandbox is created. clone_seed fills the
 *          clone in the running sandbox and adds the remote sandbox-NAME to the host repository.
 *          git runs remote_main for that remote (the program git-remote-sbx). clone_keep,
 *          clone_forget, clone_rename and clone_fork belong to `sbx rm`, `sbx rename` and `sbx
 *          fork`. Staged workspaces use the same ways: clone_show and clone_fetch get commits by
 *          value, clone_tree_open gets the files of a commit, and clone_merge merges texts.
 * Trust    The host repository is the user's. Everything that the sandbox sends is hostile: see
 *          transfer.h and refs.h.
 * Owns     struct clone_want and clone_place borrow their strings. clone_tree_free frees a tree.
 * Limits   CLONE_MAX_CARRY patterns; CLONE_NOTE_MS for the line at the end of a session.
 * See      docs/decisions/clone-quarantine.md, tests/cli/test_clone.py
 */
#pragma once

#include <jansson.h>
#include "lib/base/slice.h"
#include "lib/client/cli/opt.h"
#include "lib/client/cli/ui.h"

#define CLONE_MAX_CARRY 64
#define CLONE_NOTE_MS 2000

/* The clone that the user wants. */
struct clone_want {
	const char *host, *guest; /* work tree, place in the guest */
	const char *branch;	  /* to create; NULL: the current one */
	const struct opt_list *carry;
};

/* Whether `want` can be cloned: a work tree, its top, a new branch; a name for a remote. */
int clone_check(const struct clone_want *want, const char *sandbox, struct problem *p) MUST_CHECK;
/* Fills the clone of a running sandbox. */
int clone_seed(const struct clone_want *want, const json_t *sandbox, struct problem *p) MUST_CHECK;
/* Before a removal: starts the sandbox, and keeps commits that the host repository does not have in
 * refs/sbx/NAME. The sandbox may have no clone. */
int clone_keep(const json_t *sandbox, struct problem *p) MUST_CHECK;
/* After a removal: removes the remote. Commits of its remote-tracking branches stay in refs/sbx. */
void clone_forget(const json_t *sandbox);
/* A line at the end of a session: commits that the host repository does not have; on a terminal
 * also if it has all. */
void clone_note(const json_t *sandbox);
/* After a rename, with the old object. */
void clone_rename(const json_t *sandbox, const char *to);
/* A new sandbox has a copy of the clone: adds its remote. */
void clone_fork(const json_t *sandbox, const char *name);
/* The main of git-remote-sbx: REMOTE URL. */
int remote_main(int argc, char **argv);

/* ---- staged workspaces ---- */

/* A repository of the host and its copy in a running sandbox. */
struct clone_place {
	const char *sandbox, *id;
	const char *host, *guest; /* work tree, path in the guest */
};

typedef void clone_put(void *arg, const char *branch, const char *oid, const char *log);

/* Gives each branch with commits that the host does not have, with their log. The log is clean for
 * a terminal. The host repository is not changed. */
int clone_show(
	const struct clone_place *w, clone_put *put, void *arg, struct problem *p) MUST_CHECK;
/* Stores commits as refs/sbx/SANDBOX/BRANCH. *ret_n: how many the host did not have. */
int clone_fetch(const struct clone_place *w, char *const *oids, char *const *branches, size_t n,
	size_t *ret_n, struct problem *p) MUST_CHECK;
/* Whether both could come from clone_show. */
bool clone_is_branch(const char *oid, const char *branch);

/* The files of the commit that HEAD was at a time, below `host`. NULL: it is unknown, or there is
 * no repository. */
struct clone_tree *clone_tree_open(const char *host, const char *id, long long at_ms);
void clone_tree_free(struct clone_tree *t);
/* Whether there is a file or a link. */
bool clone_tree_has(const struct clone_tree *t, const char *path);
/* The content of a file. False: there is none, or it has more than max bytes. */
bool clone_tree_load(struct clone_tree *t, const char *path, size_t max, char **ret, size_t *ret_n,
	bool *ret_exec);
/* git merge-file in the jail: 0, the number of conflicts (below 128), or another failure. */
int clone_merge(const char *id, struct slice ours, struct slice base, struct slice theirs,
	size_t max, char **ret, size_t *ret_n, struct err *err) MUST_CHECK;
