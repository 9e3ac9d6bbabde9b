/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rulebook - the policy of this installation: the file state/policy, and its rules in memory.
 *
 * How      rulebook_refresh reads the file, and the managed policy, if they have changed since the
 *          last read. A change edits the rules in memory (rulebook_edit.h). rulebook_prepare then
 *          writes them to a new file and rulebook_commit renames it into place. Steps in between
 *          can still fail: rulebook_abandon discards the new file. After a crash either the old or
 *          the new policy is complete. The first rule about requests changes the file to `policy
 *          2`; the last `policy 1` stays as policy.1 until the policy has no such rule again.
 * Trust    The user's own directory. Keepers read the file themselves.
 * Owns     The rules, and the prepared file until it is committed or abandoned.
 * Never    Changes a policy that it cannot read: only import and reset replace one.
 * See      proto/PROTOCOL.policy, rulebook_test.c
 */
#pragma once

#include <sys/stat.h>
#include "lib/rules/managed/managed.h"
#include "rulebook_edit.h"

/* Files in the state directory with this prefix contain a text to import. */
#define RULEBOOK_IMPORT_PREFIX "policy.import."

/* Whether keepers decide by rules about requests. If they do not, such rules are refused: a rule
 * that is accepted and ignored is worse than an error. */
#define RULEBOOK_HAS_REQUESTS 1

struct rulebook {
	struct rules rules;
	bool exists;
	struct err fault;  /* empty: none */
	uint64_t revision; /* changes with every change */
	bool fresh;	   /* rules are from the file in `seen` */
	struct stat seen;
	struct managed managed; /* limits what the rules can allow */
	uint64_t n_managed;	/* how often it has changed */
	char *prepared;		/* a file that waits for its commit */
	char hash[65];		/* SHA-256 of it, in hex */
};

void rulebook_done(struct rulebook *b);
void rulebook_refresh(struct rulebook *b);
/* Reads the managed policy again if it has changed; then the revision changes too. */
void rulebook_look_managed(struct rulebook *b);
/* As rulebook_refresh; returns -ENOENT or -EBADMSG if there are no rules to change. */
int rulebook_need(struct rulebook *b, struct err *err) MUST_CHECK;
/* Drops uncommitted changes in memory. */
void rulebook_abandon(struct rulebook *b);
/* -ENOTSUP for a rule that keepers would not decide by; -ENOENT for one of an API without a
 * pack. */
int rulebook_check_requests(const struct rule *list, size_t n, struct err *err) MUST_CHECK;
int rulebook_prepare(struct rulebook *b, struct err *err) MUST_CHECK;
int rulebook_commit(struct rulebook *b, struct err *err) MUST_CHECK;
/* Removes the file: everything is denied then. -ENOENT if there is none. */
int rulebook_erase(struct rulebook *b, struct err *err) MUST_CHECK;
/* Removes files that a crash left behind. Must be called first. */
void rulebook_clean(void);
/* The text of the file, on the heap. -ENOENT if there is none. */
int rulebook_text(char **ret_text, size_t *ret_n, struct err *err) MUST_CHECK;
/* New rules in memory: from a given text, or from a preset of the installation. */
int rulebook_import(struct rulebook *b, struct slice text, const char *name, uint64_t now_ms,
	struct err *err) MUST_CHECK;
/* lock: deny-all with a deny rule that no allow rule overrides. */
int rulebook_load_preset(struct rulebook *b, const char *preset, bool lock, uint64_t now_ms,
	struct err *err) MUST_CHECK;
