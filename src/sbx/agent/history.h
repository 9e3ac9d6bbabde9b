/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history - the agent's history, stored on the host for each agent and first workspace.
 *
 * How      history/AGENT/HASH/NAME of the state directory is one history directory of the agent's
 *          file, and a mount of the sandbox below the agent's home. HASH is of the workspace's
 *          path, which is stored in history/AGENT/HASH/workspace for users. A new sandbox for the
 *          same agent and workspace uses it again.
 * Trust    Our own state directory; the guest writes its contents and sbx never reads them. A guest
 *          can nest directories to any depth and remove all permissions from them; removal needs
 *          two descriptors, follows no link and has no limit of depth.
 * Never    Is shared between agents or workspaces, nor removed while a sandbox refers to it.
 * See      lib/rules/agent/agent.h, lib/rules/spec/spec.h (mounts), tests/cli/test_agents.py
 */
#pragma once

#include "lib/rules/agent/agent.h"
#include "lib/client/api/api.h"

/* Creates the directories and adds the mounts to the request. A sandbox without a workspace has
 * none. */
int history_add(const struct agent *a, json_t *body, struct problem *p) MUST_CHECK;
/* The directory with the mounts of this sandbox, on the heap; NULL: none. */
char *history_folder(const json_t *sandbox);
/* Removes that directory unless another listed sandbox uses it: -EBUSY names it. */
int history_remove(const char *folder, const json_t *list, struct problem *p) MUST_CHECK;
