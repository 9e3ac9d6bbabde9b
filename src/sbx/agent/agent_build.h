/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_build - the template of an agent: its npm packages, installed in a sandbox of its own and
 * kept.
 *
 * How      A scratch sandbox is made from the agent's base whose network is the registry of the
 *          host's npm (npmrc.h) and the hosts that the agent's file names for installing, and which
 *          has no credential (`only` of lib/rules/spec/spec.h). data/agents/install.sh runs in it
 *          as root. Its disk becomes the template, with versions and integrity in the manifest, and
 *          the sandbox goes, whatever happened; Ctrl-C ends what runs and then does just that. What
 *          a killed build left is removed by the next one.
 * Trust    Packages are programs of others and run as root there. What the script prints is the
 *          guest's: words of it are checked before they go into the manifest.
 * Limits   BUILD_MAX_WORD bytes a word; the script's own time limits.
 * Never    Passes a token of the host's npm on.
 * See      lib/rules/agent/agent.h, proto/PROTOCOL.agent, tests/e2e/test_agents.py
 */
#pragma once

#include "lib/rules/agent/agent.h"
#include "lib/client/cli/ui.h"

#define BUILD_MAX_WORD 160

/* With the versions of the agent's file, under its name. */
int agent_build(const struct agent *a, struct problem *p) MUST_CHECK;
/* With the newest versions; says what changes. *ret_changed is false when there are no newer
 * ones. */
int agent_update(const struct agent *a, bool *ret_changed, struct problem *p) MUST_CHECK;
