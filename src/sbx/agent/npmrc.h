/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npmrc - where the host's npm gets its packages: registry and certificates, never a token.
 *
 * How      npmrc_read takes npm's own variables, then ~/.npmrc, then /etc/npmrc: what comes first
 *          counts, as in npm; when they say nothing, the host that the service npm is for.
 *          npmrc_take reads one text.
 * Trust    The user's own files. Tokens in them are seen and left where they are: has_token says
 *          so.
 * Owns     struct npmrc owns its strings; npmrc_done frees them.
 * Limits   NPMRC_MAX_BYTES a file; others are left out.
 * Never    Gives a registry with a user or password in it.
 * See      npmrc_test.c, agent_build.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define NPMRC_MAX_BYTES 65536

struct npmrc {
	char *registry; /* a URL; npm's own, from the service npm, when none is configured */
	char *cafile;	/* NULL: none */
	char *proxy;	/* NULL: none */
	bool has_token; /* somewhere a token or password is kept */
};

void npmrc_done(struct npmrc *n);
#define AUTO_NPMRC CLEANUP(npmrc_done)

/* Values that are there already stay. */
void npmrc_take(struct npmrc *n, struct slice text);
/* Everything there is; registry is filled afterwards. */
int npmrc_read(struct npmrc *ret, struct err *err) MUST_CHECK;
/* "HOST:PORT" of its registry, on the heap; NULL with a sentence. */
char *npmrc_target(const struct npmrc *n, struct err *err);
