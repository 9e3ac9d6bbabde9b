/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_build - builds the template of an agent: its npm packages, installed in a scratch sandbox.
 *
 * How      A scratch sandbox is created from the agent's base. Its network is the registry of the
 *          host's npm (npmrc.h) and the hosts that the agent's file names for the installation, and
 *          it has no credential (`only` of lib/rules/spec/spec.h). data/agents/install.sh runs in
 *          it as root. Its disk becomes the template, with versions and integrity in the manifest,
 *          and the sandbox is always removed; Ctrl-C stops the build and then does the same. The
 *          next build removes the files of a killed one.
 * Trust    Packages are third-party programs and run as root there. Output of the script comes from
 *          the guest: its words are checked before they are put into the manifest.
 * Limits   BUILD_MAX_WORD bytes a word; the script's own time limits.
 * Never    Passes a token of the host's npm to the sandbox.
 * See      lib/rules/agent/agent.h, proto/PROTOCOL.agent, tests/e2e/test_agents.py
 */
#pragma once

#include "lib/rules/agent/agent.h"
#include "lib/client/cli/ui.h"

#define BUILD_MAX_WORD 160

/* With the versions of the agent's file, under its name. */
int agent_build(const struct agent *a, struct problem *p) MUST_CHECK;
/* With the newest versions; prints the changes. *ret_changed is false if there are no newer
 * ones. */
int agent_update(const struct agent *a, bool *ret_changed, struct problem *p) MUST_CHECK;
