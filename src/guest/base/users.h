/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users - reads and edits /etc/passwd and /etc/group.
 *
 * How      The program is static, so it has no name service (which would load code of the guest's
 *          disk into PID 1). Pure functions work on the text of the files.
 * Trust    Files of the guest's own disk; a broken line is skipped.
 * Owns     Nothing; the caller owns edited texts.
 * Limits   USERS_MAX_GROUPS supplementary groups, USERS_MAX_FIELD bytes a field.
 * See      users_test.c
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define USERS_MAX_GROUPS 64
#define USERS_MAX_FIELD 256
#define USERS_AGENT "agent"

struct guest_user {
	uid_t uid;
	gid_t gid;
	size_t n_groups;
	gid_t groups[USERS_MAX_GROUPS]; /* without gid */
	char name[USERS_MAX_FIELD], home[USERS_MAX_FIELD], shell[USERS_MAX_FIELD];
};

/* "name", "uid", "name:group", "uid:gid", "" (the agent). An unused number is a user without a name
 * whose home is /. Returns -ENOENT if a name is unknown. */
int users_find(const char *passwd, const char *group, const char *spec, struct guest_user *ret,
	struct err *err) MUST_CHECK;
/* Whether a text of /etc/group has this group, with its gid. */
bool users_find_group(const char *group, const char *name, gid_t *ret_gid);
/* As users_find, on the guest's files. */
int users_lookup(const char *spec, struct guest_user *ret, struct err *err) MUST_CHECK;
/* The gid of a group in the guest's file; -ENOENT. */
int users_group_id(const char *name, gid_t *ret_gid) MUST_CHECK;

/* The text of /etc/passwd with other ids for `name`; NULL if the user does not exist. */
char *users_edit_passwd(const char *passwd, const char *name, uid_t uid, gid_t gid);
/* The text of /etc/group with another id for `name`; NULL if the group does not exist. */
char *users_edit_group(const char *group, const char *name, gid_t gid);
/* Gives the agent these ids, in the files and in its home. Does nothing if it has them. */
int users_set_agent(uid_t uid, gid_t gid, struct err *err) MUST_CHECK;
