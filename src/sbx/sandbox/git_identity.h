/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git_identity - the user's name and mail address for commits, offered to a new sandbox.
 *
 * How      Without an identity the first `git commit` in a sandbox fails. `/usr/bin/git -C / config
 *          --global` reads two values of the host's global git configuration (user.name,
 *          user.email, no others); it reads no repository and runs nothing. The setting
 *          git.identity decides: yes, no, or ask: once, on a terminal; the answer becomes the
 *          setting. The values become ~/.gitconfig of the sandbox unless there is one.
 * Trust    The host's own configuration. Values with control characters, or too long, are ignored.
 * Owns     The two strings.
 * Limits   GIT_MAX_VALUE bytes each.
 * See      git_identity_test.c, create.c
 */
#pragma once

#include "lib/base/attr.h"

#define GIT_MAX_VALUE 200

struct git_identity {
	char *name, *email; /* NULL: none */
};

void git_identity_done(struct git_identity *g);
#define AUTO_GIT_IDENTITY CLEANUP(git_identity_done)
/* The identity for a new sandbox: empty unless both are set and the user agrees. May prompt. */
void git_identity_get(struct git_identity *ret);
/* The file, on the heap; NULL if a value is not valid for a commit. */
char *git_identity_file(const struct git_identity *g) MUST_CHECK;
