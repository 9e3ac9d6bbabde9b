/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_config - one line in the user's ~/.ssh/config: the Include of our configuration.
 *
 * How      The line becomes the first one, because ssh takes the first value of most keywords.
 *          Every other byte of the file stays. A symbolic link is followed, and its target
 *          replaced. The file keeps its mode; a new file has 0600, a new directory 0700.
 * Trust    The user's own file. It is parsed only as lines.
 * Owns     Strings of struct user_config; user_config_done frees them.
 * Limits   USER_CONFIG_MAX bytes.
 * See      tests/cli/ssh/test_setup.py
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "lib/client/cli/ui.h"

#define USER_CONFIG_MAX (1u << 20)

struct ssh_home;

struct user_config {
	char *path; /* without links */
	bool linked;
	char *line; /* without newline */
	char *text; /* NULL: there is no file */
	size_t n;
	mode_t mode;
};

void user_config_done(struct user_config *c);
#define AUTO_USER_CONFIG CLEANUP(user_config_done)
int user_config_load(
	const struct ssh_home *h, struct user_config *ret, struct problem *p) MUST_CHECK;
/* Whether it is the first line, and in no other. */
bool user_config_is_set(const struct user_config *c);
bool user_config_has(const struct user_config *c);
/* Makes it the first line, or removes it. */
int user_config_save(struct user_config *c, bool set, struct err *err) MUST_CHECK;
/* Warns if ssh does not use our values, or uses others of the file in addition. */
void user_config_check(const struct ssh_home *h, const struct user_config *c);
