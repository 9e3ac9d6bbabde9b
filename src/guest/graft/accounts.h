/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts - the user agent in somebody else's passwd, group and shadow.
 *
 * How      Pure functions over the files' text. What is there stays; the agent and root are added
 *          when they are missing. A number that somebody has already is shared, and the agent's
 *          line comes first, so that the number has the agent's name.
 * Trust    The text is an image's, hence a stranger's: a line that is not well made is kept as it
 *          is and means nothing.
 * Owns     Texts that are returned belong to the caller.
 * See      accounts_test.c
 */
#pragma once

#include "lib/base/err.h"

#define ACCOUNTS_AGENT "agent"
#define ACCOUNTS_ID 1000
#define ACCOUNTS_HOME "/home/agent"

/* -EPERM when the image's own agent is root, or lives at no usable place. */
int accounts_passwd(const char *old, const char *shell, char **ret, struct err *err) MUST_CHECK;
/* Also makes the agent a member of sudo, wheel and docker where those are. */
char *accounts_group(const char *old);
/* A password that nobody can type. */
char *accounts_shadow(const char *old);
