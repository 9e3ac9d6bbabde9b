/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project - the file `.sbx.conf` of a project, for create and run.
 *
 * How      project_apply reads the file in the first workspace, displays what it requests and asks.
 *          Without a terminal it is ignored with a note, unless --project is given.
 * Trust    The file is untrusted (project_file.h). A link in the place of the file is refused.
 * See      proto/PROTOCOL.project, tests/cli/test_planted.py
 */
#pragma once

#include "src/sbx/sandbox/create.h"

#define PROJECT_NAME ".sbx.conf"

/* Reads the file in the first workspace of the creation and adds what the user confirms to it. */
int project_apply(const struct opts *o, struct creation *c, struct problem *p) MUST_CHECK;
