/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_config - remotes in the configuration of the host repository.
 *
 * How      remote_list_read gives the remotes that a clone may have: a URL of https, http, ssh or
 *          git, without a password. remote_add adds sandbox-NAME, which fetches branches and no
 *          tags.
 * Trust    The user's configuration. Nothing of the guest.
 * Owns     struct remote_list owns its strings.
 * Limits   REMOTE_MAX remotes.
 * See      tests/cli/test_clone.py
 */
#pragma once

#include "repo.h"

#define REMOTE_MAX 16

struct remote_list {
	char *name[REMOTE_MAX], *url[REMOTE_MAX];
	size_t n;
};

void remote_list_done(struct remote_list *l);
void remote_list_read(const struct repo *repo, struct remote_list *ret);
/* The upstream of a branch, if its remote is in the list; NULL otherwise. */
void remote_tracking(const struct repo *repo, const char *branch, const struct remote_list *l,
	char **ret_remote, char **ret_merge);
/* Removes the section of sandbox-NAME. 0 if there is no such section. */
int remote_remove(const struct repo *repo, const char *sandbox, struct problem *p) MUST_CHECK;
int remote_add(const struct repo *repo, const char *sandbox, struct problem *p) MUST_CHECK;
