/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env - NAME=value pairs from -e and --env-file.
 *
 * How      Files first, in their order, then -e: later values override earlier ones. A bare NAME of
 *          -e takes the value from this process's environment, and is skipped if it is not set.
 *          Files are lines of NAME=VALUE; `#` begins a comment line; values are not unquoted.
 * Trust    The user's arguments. A file in a workspace may come from a guest: it cannot read
 *          variables of the host, and no symlink in the workspace is followed (out_place.h).
 * Owns     env_done frees the list.
 * Limits   ENV_MAX_FILE bytes a file, ENV_MAX_VARS pairs.
 * See      env_test.c
 */
#pragma once

#include "lib/client/cli/opt.h"
#include "lib/client/cli/ui.h"
#include "lib/base/slice.h"

#define ENV_MAX_FILE (1u << 20)
#define ENV_MAX_VARS 1024

struct env {
	char **v; /* NULL-terminated when n > 0; "NAME=value" */
	size_t n;
};

void env_done(struct env *e);
#define AUTO_ENV CLEANUP(env_done)

/* "NAME=value" or "NAME". Returns -EINVAL if invalid. */
int env_add(struct env *e, const char *word, struct err *err) MUST_CHECK;
/* The text of a file; `name` for messages. */
int env_add_text(struct env *e, struct slice text, const char *name, struct err *err) MUST_CHECK;
/* Both options of a verb. */
int env_from_opts(struct env *e, const struct opt_list *files, const struct opt_list *words,
	struct problem *p) MUST_CHECK;
