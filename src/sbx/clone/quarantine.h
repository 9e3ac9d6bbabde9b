/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine - a bare repository of our own, in which a jailed git talks to the git of a guest.
 *
 * How      quarantine_make writes the repository by hand below the directory of the sandbox: its
 *          configuration is ours, its alternates are the objects of the host repository.
 *          quarantine_spawn starts git in the jail (JAIL_GIT): it sees /usr, the quarantine and,
 *          read-only, the objects. Its only connection is the pair of descriptors 3 and 4.
 * Trust    The jailed git reads what the guest sends, and is limited in time, memory and files.
 *          What it leaves in the quarantine is the guest's.
 * Owns     quarantine_done removes the directory.
 * Limits   JAIL_GIT_FSIZE a file; QUARANTINE_RUN_MS for quarantine_run.
 * See      transfer.h, lib/os/jail/profiles.c
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/os/jail/jail.h"
#include "repo.h"

#define QUARANTINE_RUN_MS 60000

struct quarantine {
	char *dir;
	const struct repo *repo;
	const char *objects; /* a further directory of objects; NULL: none */
};

/* The descriptors of a jailed git. */
struct quarantine_fds {
	int from_guest, to_guest;
	int in; /* -1: none */
	int out, err;
};

void quarantine_done(struct quarantine *q);
#define AUTO_QUARANTINE CLEANUP(quarantine_done)

/* For the sandbox `id`; `objects` as in the struct. */
int quarantine_make(struct quarantine *q, const struct repo *repo, const char *id,
	const char *objects, struct err *err) MUST_CHECK;
/* Lines "OID NAME" as its refs. */
int quarantine_set_refs(struct quarantine *q, const char *lines, struct err *err) MUST_CHECK;
int quarantine_spawn(struct quarantine *q, const char *const *argv,
	const struct quarantine_fds *fds, struct jail_child *ret, struct err *err) MUST_CHECK;
/* A file in it, for a jailed git. */
int quarantine_save(
	struct quarantine *q, const char *name, struct slice content, struct err *err) MUST_CHECK;
/* Runs a jailed git to its end, without a guest. *ret_out gets at most max bytes of its output. The
 * exit status, or -errno. */
int quarantine_run(struct quarantine *q, const char *const *argv, size_t max, char **ret_out,
	size_t *ret_n, struct err *err) MUST_CHECK;
/* The packs in it as open files, read-only. *ret has at most max; gives how many. */
int quarantine_packs(struct quarantine *q, int *ret, size_t max, struct err *err) MUST_CHECK;
/* A new private directory of the sandbox `id`. */
int quarantine_dir(const char *id, char **ret, struct err *err) MUST_CHECK;
void quarantine_remove_dir(const char *dir);
