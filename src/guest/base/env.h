/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env - the environment of an exec: login defaults, settings of the host, variables of the user.
 *
 * How      Later ones win: defaults of the user, then the sandbox's, then the exec's own.
 * Trust    Values come from the host and are not secret.
 * Owns     A struct env owns its strings; env_done frees them.
 * See      env_test.c
 */
#pragma once

#include <stddef.h>
#include "lib/base/attr.h"

struct env {
	size_t n, room;
	char **v; /* NULL-terminated */
};

void env_done(struct env *e);
/* "NAME=value"; replaces an earlier one with that name. */
void env_put(struct env *e, const char *assignment);
void env_set(struct env *e, const char *name, const char *value);
const char *env_get(const struct env *e, const char *name);
void env_put_all(struct env *e, char *const *assignments);
