/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child - prepares the start of a keeper or the vault.
 *
 * How      Between fork and exec: child_reset_signals. The output of a child goes to a separate
 *          file, of which child_open_log keeps the last megabyte or two.
 * Trust    Files in the user's own state directory.
 * Limits   CHILD_MAX_LOG.
 * See      keeper_spawn.c, vault_spawn.c, images.c
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define CHILD_MAX_LOG (1 << 20)

void child_reset_signals(void);
/* --state=DIR of a keeper: its command line identifies the installation. */
char *child_state_option(void);
/* Whether the command line is that of a keeper of this user and of this state directory, for the
 * sandbox id; NULL: for any. Other processes cannot read a keeper's descriptors
 * (lib/os/jail/broker.h), but can read its command line. */
bool child_is_keeper(pid_t pid, const char *id);
/* From /proc, 0 if there is none. */
pid_t child_parent_of(pid_t pid);
/* For appending; a long one is renamed to PATH.1 first. */
int child_open_log(const char *path, struct err *err) MUST_CHECK;
