/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_home - the SSH keys of the installation and the client's configuration.
 *
 * How      STATE/ssh has: ca, the key that signs the host keys of connections; key, with which the
 *          client logs in; known_hosts, which trusts ca for *.sbx; config, for ssh -F or as an
 *          Include of ~/.ssh/config. What is missing is created by ssh-keygen; config and
 *          known_hosts are rewritten if they differ. A lock keeps two processes apart.
 * Trust    The user's own directory, mode 0700.
 * Owns     Strings of struct ssh_home; ssh_home_done frees them.
 * Limits   SSH_KEYGEN_MS for one ssh-keygen.
 * See      ssh_config.h
 */
#pragma once

#include "lib/client/cli/ui.h"

#define SSH_KEYGEN_MS 30000
#define SSH_MAX_FILE 16384
#define SSH_SUFFIX ".sbx" /* NAME.sbx is the host name of a sandbox */

struct ssh_home {
	char *dir, *ca, *key, *known_hosts, *config;
	char *self; /* this program */
};

void ssh_home_done(struct ssh_home *h);
#define AUTO_SSH_HOME CLEANUP(ssh_home_done)
/* The paths, and the files that are missing. */
int ssh_home_make(struct ssh_home *h, struct problem *p) MUST_CHECK;
/* Runs ssh-keygen with these arguments. */
int ssh_keygen(const char *const *args, struct problem *p) MUST_CHECK;
