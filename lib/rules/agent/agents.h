/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents - all agents of an installation.
 *
 * How      agents_load_installed reads NAME.conf of the shipped directory, then those of the
 *          directory `agents` next to settings.conf: a user's file with the name of a shipped file
 *          replaces it.
 * Trust    As agent.h.
 * Owns     A struct agents owns its agents; what is found lives as long as it does.
 * Limits   AGENTS_MAX, AGENTS_MAX_FAULTS.
 * Never    Falls back silently from an invalid user file to the shipped file: the agent is then
 *          missing, and a fault has the reason.
 * See      proto/PROTOCOL.agent, agents_test.c, data/agents
 */
#pragma once

#include "agent.h"

#define AGENTS_MAX 128
#define AGENTS_MAX_FAULTS 16

struct agents {
	struct agent *v[AGENTS_MAX]; /* sorted by name */
	bool own[AGENTS_MAX];	     /* the user's file */
	size_t n;
	struct agent *gone[AGENTS_MAX]; /* those with `unavailable`, in the order of their files */
	size_t n_gone;
	char *fault[AGENTS_MAX_FAULTS]; /* "FILE: line N: what is wrong" */
	size_t n_faults;
};

/* Every NAME.conf of a directory; none if the directory does not exist. */
int agents_load(struct agents *set, const char *folder, bool own, struct err *err) MUST_CHECK;
int agents_load_installed(struct agents *set, struct err *err) MUST_CHECK;

/* Why an agent cannot be installed; NULL: it can, or nothing is known of it. */
const char *agents_unavailable(const struct agents *set, const char *name);
/* NULL when there is none. */
const struct agent *agents_find(const struct agents *set, const char *name);
