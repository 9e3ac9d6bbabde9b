/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace - the PATH arguments of create and run: PATH[:ro], HOST:GUEST[:ro].
 *
 * How      The host path is resolved, including symlinks, because the guest sees it under the same
 *          name; HOST:GUEST sets another. A single file must be read-only. `:ro`, `:rw` and the
 *          last `:/` always apply, even if such files exist: a guest can create files in its
 *          workspace. A directory named `a:ro` is written `a:ro:rw`, and one named `a:/b` is
 *          `a:/b:/GUEST`.
 * Trust    The user's arguments. Paths that lib/vm/share/place.h does not permit are rejected.
 * Owns     workspace_done frees the strings.
 * See      lib/vm/share/place.h, workspace_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/client/cli/ui.h"

struct workspace {
	char *host, *guest;
	/* the host path as typed, absolute: sbxd checks it for planted symlinks */
	char *typed;
	bool ro, file;
};

void workspace_done(struct workspace *w);
/* *ret must be all zero. */
int workspace_parse(
	const char *arg, bool force, struct workspace *ret, struct problem *p) MUST_CHECK;
/* A sandbox name from agent and directory: "shell-my-project". host NULL: only the agent. */
void workspace_default_name(const char *agent, const char *host, char *buf, size_t size);
/* For users: "/a/b", "/a/b -> /c", with " (ro)" or " (rw)". On the heap. */
char *workspace_describe(const char *host, const char *guest, bool ro);
