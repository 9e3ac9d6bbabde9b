/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths - the directories of this installation, from the XDG variables.
 *
 * How      One set of XDG directories is one installation; tests run many side by side by setting
 *          them. paths_make creates directories on demand, with mode 0700.
 * Trust    The user's own environment. sbx, sbxd and keeper; the jailed programs have no paths.
 * Limits   PATHS_MAX bytes a path. The code that binds a socket checks that its name fits.
 * See      paths_test.c
 */
#pragma once

#include "lib/base/err.h"

#define PATHS_MAX 4096

enum paths_root {
	PATHS_RUNTIME, /* sockets: $XDG_RUNTIME_DIR/sbx, else state/run */
	PATHS_STATE,   /* registry, sandboxes: $XDG_STATE_HOME/sbx */
	PATHS_DATA,    /* templates: $XDG_DATA_HOME/sbx */
	PATHS_CONFIG,  /* settings: $XDG_CONFIG_HOME/sbx */
	PATHS_LIBEXEC, /* helper programs: $SBX_LIBEXEC, else as installed */
	PATHS_SHARE,   /* shipped data files: $SBX_SHARE, else as installed */
	PATHS_N_ROOTS,
};

/* The directory `root` followed by "/" and the formatted rest (or alone when fmt is NULL), on the
 * heap. */
char *paths_get(enum paths_root root, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* mkdir -p with mode 0700 for what is missing. */
int paths_make(const char *dir, struct err *err) MUST_CHECK;
