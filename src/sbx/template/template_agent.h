/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_agent - `sbx template build AGENT` and `sbx template update`.
 *
 * How      Thin over agent_build.h; cmd_template.c has the rows.
 * Trust    The user's arguments.
 * See      agent_build.h, cmd_template.c
 */
#pragma once

#include "lib/client/cli/opt.h"

extern const struct opt_def template_update_opts[];

/* Each gives the exit status. */
int template_agent_build(const char *name, bool force);
int template_agent_update(struct opts *o);
