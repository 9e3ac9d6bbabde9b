/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project_file - `.sbx.conf`: what a project requests for its new sandboxes.
 *
 * How      project_parse reads a text of proto/PROTOCOL.project: a template, directories next to
 *          the project, hosts with reasons, ports. There is no line for a command, a variable or a
 *          credential.
 * Trust    Untrusted: the file is in a workspace, so a guest can write it. Runs in sbx. The user
 *          confirms what is displayed (project.h).
 * Owns     All its pointers, freed by project_file_done.
 * Limits   PROJECT_MAX_BYTES, PROJECT_MAX_LINE, PROJECT_MAX_LIST lines of a kind.
 * Never    Accepts an absolute path, one that leads further up than the parent of the project, a
 *          host without a port or with a pattern, or a port on another address than loopback.
 * See      project_file_test.c, project_file_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define PROJECT_MAX_BYTES 16384
#define PROJECT_MAX_LINE 512
#define PROJECT_MAX_LIST 16
#define PROJECT_MAX_TEXT 200

/* A directory and its mode, a host and the reason, a port and NULL. */
struct project_row {
	char *text, *why;
	bool is_writable;
};

struct project_list {
	struct project_row v[PROJECT_MAX_LIST];
	size_t n;
};

struct project_file {
	char *template; /* NULL: none */
	struct project_list path, host, port;
};

/* *ret must be all zero, and is so after an error. `name` is for messages. */
int project_parse(
	struct slice text, const char *name, struct project_file *ret, struct err *err) MUST_CHECK;
void project_file_done(struct project_file *f);
#define AUTO_PROJECT_FILE CLEANUP(project_file_done)
