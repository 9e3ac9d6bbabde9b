/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_twin - the scratch sandbox ("twin") for destructive probes.
 *
 * How      Created by `sbx create` in the background: same template, CPUs, memory, engine and own
 *          rules. Of its three workspaces below the directory of the run one is writable and has a
 *          hidden file, one is read-only, and one is read-only inside the first one. `sbx rm -f`
 *          removes it. Its name is prove- and the word of the directory, by which a later run finds
 *          and removes the twin of a killed run.
 * Trust    The user's own policy file; the output of the commands is cleaned.
 * Owns     The twin that it created, until prove_twin_remove; a twin that was given by name is
 *          kept.
 * Limits   PROVE_TWIN_SECONDS until it runs.
 * See      prove_run.c, prove_folder.h
 */
#pragma once

#include "prove_folder.h"
#include "prove_job.h"
#include "prove_place.h"

#define PROVE_TWIN_SECONDS 240
#define PROVE_TWIN_HIDDEN "hidden.env"
#define PROVE_TWIN_MAX_RULES 400

enum prove_twin_state {
	PROVE_TWIN_NONE,
	PROVE_TWIN_MAKING,
	PROVE_TWIN_UP,
	PROVE_TWIN_FAILED, /* see `why` */
};

struct prove_twin {
	enum prove_twin_state state;
	const char *sbx; /* its path; set before prove_twin_start */
	char *name;
	bool ours;
	struct prove_job job;
	char why[300];
};

/* given: the name of an existing one, or NULL. */
void prove_twin_start(struct prove_twin *t, const char *given, const struct prove_place *like,
	const struct prove_folder *folder);
void prove_twin_look(struct prove_twin *t);
size_t prove_twin_poll(const struct prove_twin *t, struct pollfd *ret);
void prove_twin_remove(struct prove_twin *t);
/* Removes twins, and directories below `top`, that killed runs have left. */
void prove_twin_sweep(const char *top, const char *sbx);
bool prove_twin_is_name(const char *name);
