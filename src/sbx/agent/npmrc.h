/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npmrc - registry and certificates of the host's npm, without its token.
 *
 * How      npmrc_read takes npm's own variables, then ~/.npmrc, then /etc/npmrc: the first value
 *          applies, as in npm. Default: the host of the service npm. npmrc_take parses one text.
 * Trust    The user's own files. Tokens in them are not copied; has_token reports them.
 * Owns     struct npmrc owns its strings; npmrc_done frees them.
 * Limits   NPMRC_MAX_BYTES per file; larger ones are skipped.
 * Never    Gives a registry with a user or password in it.
 * See      npmrc_test.c, agent_build.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define NPMRC_MAX_BYTES 65536

struct npmrc {
	char *registry; /* a URL; default: npm's own, from the service npm */
	char *cafile;	/* NULL: none */
	char *proxy;	/* NULL: none */
	bool has_token; /* a token or password is stored somewhere */
};

void npmrc_done(struct npmrc *n);
#define AUTO_NPMRC CLEANUP(npmrc_done)

/* Existing values are kept. */
void npmrc_take(struct npmrc *n, struct slice text);
/* Reads everything; registry is filled in afterwards. */
int npmrc_read(struct npmrc *ret, struct err *err) MUST_CHECK;
/* Returns "HOST:PORT" of its registry, on the heap; NULL on an error. */
char *npmrc_target(const struct npmrc *n, struct err *err);
