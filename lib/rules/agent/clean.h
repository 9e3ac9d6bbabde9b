/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clean - the parts of a user's settings that may enter a sandbox: all but credentials.
 *
 * How      clean_is_secret_name judges a file's name. clean_settings returns a copy of a file's
 *          text without secrets: in JSON the members whose names are secret or that the agent's
 *          file drops, in TOML the same line by line and table by table; other texts as they are.
 *          Each removed part is reported. If the rest still looks like a credential, the file is
 *          rejected.
 * Trust    Files of the user, written by other programs. The check is heuristic: it is one layer of
 *          several, and the user sees the list.
 * Limits   CLEAN_MAX_BYTES a file, CLEAN_MAX_DEPTH of JSON.
 * Never    Copies a file that it does not understand: invalid JSON, multi-line TOML from which
 *          something is removed.
 * See      clean_test.c, clean_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define CLEAN_MAX_BYTES (1u << 20)
#define CLEAN_MAX_DEPTH 32

/* By its last part: .credentials.json, auth.json, oauth_creds.json, *.pem, .env ... */
bool clean_is_secret_name(const char *path);
/* A member or key: apiKey, token, env, headers ... */
bool clean_is_secret_key(const char *key);

/* `key` was removed. */
typedef void clean_told_fn(void *arg, const char *key);

/*
 * `name` decides what it is: *.json, *.toml, else plain text. `drop` are n further names of
 * members. *ret is on the heap. -EPERM: it holds a credential; -EINVAL: it cannot be understood;
 * -E2BIG.
 */
int clean_settings(const char *name, struct slice text, const char *const *drop, size_t n_drop,
	clean_told_fn *told, void *arg, char **ret, struct err *err) MUST_CHECK;
