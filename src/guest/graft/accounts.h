/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts - adds the user agent to the passwd, group and shadow files of an image.
 *
 * How      Pure functions over the files' text. Existing lines stay; the agent and root are added
 *          if they are missing. A uid that is in use is shared, and the agent's line comes first,
 *          so that the uid has the agent's name.
 * Trust    The text comes from an untrusted image: a malformed line is kept and ignored.
 * Owns     Texts that are returned belong to the caller.
 * See      accounts_test.c
 */
#pragma once

#include "lib/base/err.h"

#define ACCOUNTS_AGENT "agent"
#define ACCOUNTS_ID 1000
#define ACCOUNTS_HOME "/home/agent"

/* Returns -EPERM if the image's own agent is root, or has no usable home. */
int accounts_passwd(const char *old, const char *shell, char **ret, struct err *err) MUST_CHECK;
/* Also adds the agent to the groups sudo, wheel and docker if they exist. */
char *accounts_group(const char *old);
/* A password that cannot be entered. */
char *accounts_shadow(const char *old);
