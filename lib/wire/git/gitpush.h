/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitpush - what a push does to a repository, from its commands and its pack.
 *
 * How      gitpush_judge returns GITPUSH_DONE, or GITPUSH_NEED with what it must have of the
 *          server's repository; the caller gets it with gitfetch.h, gives it to gitpush_supply, and
 *          calls again. For each ref the result has the verbs and, if paths were asked for, each
 *          path that is different afterwards.
 * Force    An update is a fast-forward if the old object is found as a parent, on the way from the
 *          new one through commits whose content is known. Else it counts as force.
 * Paths    The tree of the new commit against that of the old one; for a new ref, against that of
 *          the server's default branch. Commits between them are not compared. A tree that is not
 *          in the push is requested, so an old file in a new place is found.
 * Trust    Parses untrusted input of the guest (gitpack.h). Objects of the server are believed as
 *          far as their names prove them: they were asked for by name. The old object of a command
 *          is the guest's word, and the server refuses the command if it is wrong.
 * Owns     The packs, the results.
 * Limits   GITPUSH_MAX_PATHS, GITPUSH_MAX_DEPTH, GITPUSH_MAX_VISITS, GITPUSH_MAX_SUPPLIES. Over a
 *          limit: -E2BIG with a sentence, and the push is unknown.
 * See      gitpush_test.c, gitpush_oracle.py, docs/decisions/own-pack-reader.md
 */
#pragma once

#include "gitcommands.h"
#include "gitobject.h"
#include "gitpack.h"

#define GITPUSH_MAX_PATHS 10000
#define GITPUSH_MAX_PATH 4096
#define GITPUSH_MAX_DEPTH 128
#define GITPUSH_MAX_VISITS 2000000 /* entries of trees and commits */
#define GITPUSH_MAX_SUPPLIES 64
#define GITPUSH_MAX_WANTS 64
#define GITPUSH_MAX_COMMITS 200 /* that are listed for a person, for each ref */

enum gitpush_verb {
	GITPUSH_PUSH = 1, /* a fast-forward */
	GITPUSH_CREATE = 2,
	GITPUSH_DELETE = 4,
	GITPUSH_FORCE = 8,
	GITPUSH_TAG = 16, /* in addition to one of the others */
};

struct gitpush_path {
	char status; /* as in git diff --name-status --no-renames: A, D, M, T */
	uint32_t old_mode, new_mode;
	struct git_oid old, new;
	char *path; /* bytes of the guest, without NUL */
};

struct gitpush_commit {
	struct git_oid oid;
	char *author, *subject; /* bytes of the guest, cut */
};

struct gitpush_ref {
	const struct gitcommand *command;
	unsigned verbs;
	bool has_paths; /* they are complete */
	struct gitpush_path *path;
	size_t n_paths;
	struct gitpush_commit *commit; /* of those in the push, the newest first */
	size_t n_commits;	       /* listed */
	size_t n_all_commits;
};

enum gitpush_state { GITPUSH_DONE, GITPUSH_NEED };

struct gitpush_need {
	enum gitpush_need_kind {
		GITPUSH_HEAD,	 /* the object of the default branch */
		GITPUSH_TREES,	 /* want[0] with its trees, no history, no blobs */
		GITPUSH_COMMITS, /* want[], with the commits that are not reachable from have */
	} kind;
	bool unfiltered; /* with all files: the server refused to leave them out */
	unsigned n_wants;
	struct git_oid want[GITPUSH_MAX_WANTS], have;
};

struct gitpush;

/* Takes the pack, which is indexed, or NULL without one. The commands stay the caller's. */
struct gitpush *gitpush_new(const struct gitcommands *commands, struct gitpack *pack, bool paths);
void gitpush_free(struct gitpush **p);
#define AUTO_GITPUSH CLEANUP(gitpush_free)

/* An enum gitpush_state, or what makes the push unknown: -EBADMSG, -E2BIG, -ENOENT. */
int gitpush_judge(struct gitpush *p, struct gitpush_need *ret, struct err *err) MUST_CHECK;
/* Takes the pack, which is indexed. NULL: the server did not give it. The first time, it is needed
 * once more, unfiltered: many servers refuse filters. */
void gitpush_supply(struct gitpush *p, struct gitpack *pack);
/* NULL: the server has no default branch, so a new ref is compared with nothing. */
void gitpush_set_head(struct gitpush *p, const struct git_oid *head);
/* Changed files are not needed any more, after an error of gitpush_judge. */
void gitpush_drop_paths(struct gitpush *p);
/* The bytes of the push's pack; empty without one. */
struct slice gitpush_pack(const struct gitpush *p);
/* The result for a command. */
const struct gitpush_ref *gitpush_ref(const struct gitpush *p, unsigned i);
