/* SPDX-License-Identifier: Apache-2.0 */
/*
 * branch - the git branch of a sandbox.
 *
 * How      The branch of a clone is in the object of the sandbox. Otherwise branch_of reads
 *          .git/HEAD of the first workspace. No git is started.
 * Trust    A guest can write the workspace: no link is followed, no other file than a regular one
 *          is read, and the name can have any byte except a control character.
 * Limits   BRANCH_MAX bytes.
 * See      branch_test.c
 */
#pragma once

#include <jansson.h>

#define BRANCH_MAX 256

/* "" without a branch. */
void branch_of(const json_t *sandbox, char ret[BRANCH_MAX]);
