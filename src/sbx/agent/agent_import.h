/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_import - files for the agent's home in a sandbox: the user's own settings and defaults that
 *        skip first-run prompts.
 *
 * How      import_collect reads the files that the agent's file lists below the user's home, cleans
 *          each text (lib/rules/agent/clean.h) and reports for every file whether it is copied,
 *          what was removed and why. import_seed adds the agent's own small files: complete if
 *          nothing was imported, otherwise only missing keys. import_write writes them into the
 *          sandbox.
 * Trust    The user's own files, written by third-party programs. Symlinks below the home are never
 *          followed. Credentials are not copied: by the names of files, by the keys in them, by
 *          their shape.
 * Owns     struct import owns its files; import_done frees them.
 * Limits   IMPORT_MAX_FILES, IMPORT_MAX_DEPTH nested directories, CLEAN_MAX_BYTES per file.
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
	/* "  copy  .claude/settings.json", "  leave ..."; NULL: prints nothing */
	void (*tell)(void *arg, const char *line);
	void *arg;
};

void import_done(struct import *im);
/* home: the user's. */
int import_collect(
	struct import *im, const struct agent *a, const char *home, struct err *err) MUST_CHECK;
/* seeds: of the agent. workspace: the first one in the guest, "" if there is none. */
void import_seed(
	struct import *im, const struct agent_list *seeds, const char *workspace, const char *id);
/* Into a running sandbox. Existing files are kept unless `over`. */
int import_write(const struct import *im, const char *ref, bool over, struct problem *p) MUST_CHECK;
