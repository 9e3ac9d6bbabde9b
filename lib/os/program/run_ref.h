/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ref - the programs that the user registered as sources of credentials, by the credential's
 * serial.
 *
 * How      sbxd writes state/programs/SERIAL when the vault has accepted a reference that the user
 *          set; sbx-vault-run reads it when the vault requests the value. The vault's jail does not
 *          have this directory: a compromised vault can neither add a program nor change an
 *          argument. Directory 0700, files 0600, replaced in one step.
 * Trust    Written by sbxd from a request of the user, read by sbx-vault-run. A file that does not
 *          decode, or has another serial, is treated as missing.
 * Limits   VAULT_MAX_PROGRAM, VAULT_MAX_ARGS, RUN_REF_MAX_SEEN components of a path.
 * See      run_chan.h, run_places.h, lib/base/fs/walk.h, run_ref_test.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/os/ipc/vault_item.h"

#define RUN_REF_MAX_SEEN 256

int run_ref_save(uint64_t serial, const struct vault_ref *ref, struct err *err) MUST_CHECK;
/* -ENOENT when nothing is registered. */
int run_ref_load(uint64_t serial, struct vault_ref *ret, struct err *err) MUST_CHECK;
/* Removes every file whose serial is not one of these, and the directory with the last one. */
void run_ref_keep(const uint64_t *serials, size_t n);

/* Every directory, link and file that the path of a program depends on, links before it
 * followed, and those of the arguments that are paths. */
struct run_ref_seen {
	char *path[RUN_REF_MAX_SEEN];
	size_t n;
};

void run_ref_seen_done(struct run_ref_seen *seen);
#define AUTO_SEEN CLEANUP(run_ref_seen_done)
/*
 * Whether the program may be executed for a credential: a regular file that no other user can
 * write, nor replace in its directory, nor lead elsewhere by a link on the way; a docker reference
 * only /.../docker-credential-NAME. *ret must be all zero. Whether a guest can write to what was
 * seen is the caller's to find out (run_places.h).
 */
int run_ref_check(
	const struct vault_ref *ref, struct run_ref_seen *ret, struct err *err) MUST_CHECK;
