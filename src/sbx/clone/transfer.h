/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer - objects and refs between the host repository and the clone in a sandbox.
 *
 * How      git in the guest (upload-pack, receive-pack) is connected to a jailed git in a
 *          quarantine (quarantine.h) by an exec stream. transfer_fetch then has the user's git
 *          index and check the packs again, from the files in quarantine, into the host
 *          repository; it changes no ref. transfer_list reads the refs of the clone.
 * Trust    The guest is hostile. No byte of it reaches a git outside the jail but the packs that
 *          the jailed git has checked, and the refs of refs.h.
 * Owns     struct transfer owns its strings.
 * Limits   TRANSFER_MS a transfer, JAIL_GIT_FSIZE bytes from the guest, TRANSFER_MAX_PACKS.
 * See      docs/decisions/clone-quarantine.md, tests/cli/test_clone.py
 */
#pragma once

#include <jansson.h>
#include "quarantine.h"
#include "refs.h"
#include "repo.h"

#define TRANSFER_MS (60u * 60 * 1000)
#define TRANSFER_MAX_PACKS 8

/* A clone and the host repository that it belongs to. */
struct transfer {
	char *ref, *id;
	char *guest; /* the path of the clone */
	struct repo repo;
};

void transfer_done(struct transfer *pl);
#define AUTO_TRANSFER CLEANUP(transfer_done)

/* The clone of a sandbox; pl->repo is the caller's to open. -ENOENT if it has none. */
int transfer_of(const json_t *sandbox, struct transfer *pl, struct problem *p) MUST_CHECK;
/* Runs a program in the sandbox; *ret_out (or NULL) gets at most REFS_MAX_TEXT bytes. */
int transfer_run(const struct transfer *pl, const char *user, const char *const *argv,
	char **ret_out, size_t *ret_n, struct problem *p) MUST_CHECK;

int transfer_list(const struct transfer *pl, struct refs *ret, struct problem *p) MUST_CHECK;
/* Fetches the objects into a quarantine only, which is made; refs/h of it are what the host has. */
int transfer_quarantine(const struct transfer *pl, char *const *oids, size_t n,
	struct quarantine *q, struct problem *p) MUST_CHECK;
/* Fetches the objects. *ret_keep, if set, is the path of a .keep file for git to remove. */
int transfer_fetch(const struct transfer *pl, char *const *oids, size_t n, char **ret_keep,
	struct problem *p) MUST_CHECK;

/* What is pushed: `refs` are lines "OID NAME" of the quarantine, specs refspecs. */
struct transfer_push {
	const char *refs;
	const char *const *specs; /* NULL-terminated */
	const char *objects;	  /* a further directory of objects, or NULL */
	bool seed;		  /* the first push, into an empty repository */
	char *report;		  /* result: the output of git push --porcelain */
};

/* -EREMOTEIO if a ref was refused: see the report. */
int transfer_push(const struct transfer *pl, struct transfer_push *t, struct problem *p) MUST_CHECK;
