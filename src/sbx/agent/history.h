/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history - what an agent remembers, kept on the host for each agent and first workspace.
 *
 * How      history/AGENT/HASH/NAME of the state folder is one history folder of the agent's file,
 *          and a mount of the sandbox below the agent's home; HASH is of the workspace's path,
 *          which stands in history/AGENT/HASH/workspace for people. A sandbox that is made anew for
 *          the same agent and folder finds it again.
 * Trust    Our own state folder; what is in it is written by the guest and never read by us. A
 *          guest can nest directories to any depth and take all permissions from them; removal
 *          needs two descriptors, follows no link and has no limit of depth.
 * Never    Is shared between agents or workspaces, nor removed while a sandbox refers to it.
 * See      lib/rules/agent/agent.h, lib/rules/spec/spec.h (mounts), tests/cli/test_agents.py
 */
#pragma once

#include "lib/rules/agent/agent.h"
#include "lib/client/api/api.h"

/* Makes the folders and puts the mounts into the request. A sandbox without a workspace has
 * none. */
int history_add(const struct agent *a, json_t *body, struct problem *p) MUST_CHECK;
/* The folder that the mounts of this sandbox lie in, on the heap; NULL: none. */
char *history_folder(const json_t *sandbox);
/* Removes that folder unless another sandbox (of the list) refers to it: -EBUSY names it. */
int history_remove(const char *folder, const json_t *list, struct problem *p) MUST_CHECK;
