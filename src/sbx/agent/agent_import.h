/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_import - files for the agent's home in a sandbox: the user's own settings, and what keeps
 * it from asking.
 *
 * How      import_collect reads what the agent's file lists below the user's home, cleans each text
 *          (lib/rules/agent/clean.h) and says of every file whether it goes along, what was left
 *          out of it and why. import_seed adds the agent's own small files: whole where nothing was
 *          imported, else only what is missing in it. import_write puts them into the sandbox.
 * Trust    The user's own files, written by programs of others. A symlink is not followed anywhere
 *          below the home. Credentials stay: by the names of files, by the names in them, by their
 *          shape.
 * Owns     struct import owns its files; import_done frees them.
 * Limits   IMPORT_MAX_FILES, IMPORT_MAX_DEPTH folders inside each other, CLEAN_MAX_BYTES a file.
 * See      lib/rules/agent/clean.h, tests/cli/test_agents.py
 */
#pragma once

#include "lib/rules/agent/agent.h"
#include "lib/client/cli/ui.h"

#define IMPORT_MAX_FILES 256
#define IMPORT_MAX_DEPTH 8

struct import_file {
	char *path; /* below the home */
	char *text;
};

struct import {
	struct import_file v[IMPORT_MAX_FILES];
	size_t n;
	size_t n_left; /* files that stay */
	/* "  copy  .claude/settings.json", "  leave ..."; NULL: nobody is told */
	void (*tell)(void *arg, const char *line);
	void *arg;
};

void import_done(struct import *im);
/* home: the user's. */
int import_collect(
	struct import *im, const struct agent *a, const char *home, struct err *err) MUST_CHECK;
/* seeds: of the agent. workspace: the first one in the guest, "" when there is none. */
void import_seed(
	struct import *im, const struct agent_list *seeds, const char *workspace, const char *id);
/* Into a running sandbox. What is there already is left as it is unless `over`. */
int import_write(const struct import *im, const char *ref, bool over, struct problem *p) MUST_CHECK;
