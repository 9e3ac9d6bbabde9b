/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packs - all API packs of an installation.
 *
 * How      packs_load_installed reads NAME.api of the shipped directory, then those of the
 *          directory `apis` next to settings.conf.
 * Trust    As pack.h.
 * Owns     A struct packs owns its packs; what is found lives as long as it does.
 * Limits   PACKS_MAX, PACKS_MAX_FAULTS.
 * Never    Lets a user's pack have the name or a host of a pack that is already there: such a pack
 *          is missing, and a fault has the reason.
 * See      proto/PROTOCOL.api-pack, packs_test.c, data/apis
 */
#pragma once

#include "pack.h"

#define PACKS_MAX 64
#define PACKS_MAX_FAULTS 16

struct packs {
	struct pack v[PACKS_MAX];
	bool own[PACKS_MAX]; /* the user's file */
	size_t n;
	char *fault[PACKS_MAX_FAULTS]; /* "FILE: line N: what is wrong" */
	size_t n_faults;
};

/* In alphabetical order, the shipped ones first; none of a directory that does not exist. */
int packs_load_installed(struct packs *set, struct err *err) MUST_CHECK;

void packs_done(struct packs *set);
/* NULL when there is none. */
const struct pack *packs_find(const struct packs *set, const char *name);
const struct pack *packs_of_host(const struct packs *set, struct slice host, uint16_t port);
/* -EEXIST if the set has its name or one of its hosts. */
int packs_check_new(const struct packs *set, const struct pack *p, struct err *err) MUST_CHECK;
