/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror - the package mirrors of this host, for builds that may reach no other hosts.
 *
 * How      mirror_find runs apt-get, which prints the archives of its configuration. mirror_add
 *          converts each to a resource: a host name with port 80 or 443. Addresses, localhost and
 *          other ports are skipped.
 * Trust    Runs in sbx. The host's apt configuration belongs to its administrator. Nothing is read
 *          from a template or a sandbox: a third party could name any host in it.
 * Limits   MIRROR_MAX hosts; MIRROR_MAX_LIST bytes of a mirror list.
 * See      mirror_test.c, template_scratch.h
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MIRROR_MAX 4
#define MIRROR_MAX_TARGET 264
#define MIRROR_MAX_LIST 65536

struct mirrors {
	char v[MIRROR_MAX][MIRROR_MAX_TARGET]; /* HOST:PORT */
	size_t n;
};

/* Adds the host of a line of apt-get, once. mirror+file:PATH is the first address in it. */
void mirror_add(struct mirrors *m, const char *line);
/* All zero without apt. */
void mirror_find(struct mirrors *m);
