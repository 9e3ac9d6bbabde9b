/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - `sbx agent`, and the requirements of an agent in a sandbox.
 *
 * How      agent_need.h checks it before a start, agent_import.h fills the home directory,
 *          agent_build.h builds the template, mirror.h finds the host's package mirror, history.h
 *          stores the history.
 * Trust    Agent files of the package and of the user.
 */
#pragma once

#include "agent_build.h"
#include "agent_import.h"
#include "agent_need.h"
#include "history.h"
#include "mirror.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_agent;
