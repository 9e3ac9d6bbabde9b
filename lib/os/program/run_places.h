/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_places - the directories that guests can write, for the user's programs that sbx executes.
 *
 * How      sbxd writes state/writable/ID with the writable workspaces of each sandbox before the
 *          sandbox is in the registry, and removes the file after it has left. sbx-vault-run
 *          (programs of credentials) and the keeper's spawner (SSH_ASKPASS) read all of them each
 *          time before they execute a program of the user: a workspace may have come after the
 *          program was named. Directory 0700, files 0600, replaced in one step.
 * Trust    Written by sbxd. A list that cannot be read refuses every program.
 * Limits   RUN_PLACES_MAX_BYTES a sandbox.
 * See      run_ref.h, run_places_test.c
 */
#pragma once

#include "run_ref.h"

#define RUN_PLACES_MAX_BYTES (1024 * 1024)

/* Makes the directory. */
int run_places_prepare(struct err *err) MUST_CHECK;
int run_places_save(const char *id, const char *const *dirs, size_t n, struct err *err) MUST_CHECK;
void run_places_remove(const char *id);
/* Removes every file whose id `is_known` does not know. */
void run_places_keep(bool (*is_known)(void *arg, const char *id), void *arg);
/* -EPERM when one of the paths is in one of the directories. */
int run_places_check(const struct run_ref_seen *seen, struct err *err) MUST_CHECK;
/*
 * run_ref_check and run_places_check: before each execution. -ENOENT: the program does not exist.
 * Do not inspect the program before this: a guest that can write it could change the answer in
 * between.
 */
int run_places_permit(const struct vault_ref *ref, struct err *err) MUST_CHECK;
/* The same for a program without arguments. */
int run_places_permit_program(const char *program, struct err *err) MUST_CHECK;
