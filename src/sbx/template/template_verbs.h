/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_verbs - options and functions of the commands of `sbx template`, for its table.
 *
 * How      cmd_template.c has the table and `build`; cmd_template_ls.c shows, removes and verifies,
 *          cmd_template_save.c writes and reads, cmd_template_agent.c builds and updates those of
 *          agents (agent_build.h), cmd_template_warm.c creates snapshots with sbx-keeper.
 * Trust    The user's arguments.
 */
#pragma once

#include "lib/client/cli/opt.h"

extern const struct opt_def template_ls_opts[], template_inspect_opts[], template_save_opts[],
	template_rm_opts[], template_update_opts[], template_warm_opts[];

int template_ls_run(struct opts *o);
int template_inspect_run(struct opts *o);
int template_rm_run(struct opts *o);
int template_verify_run(struct opts *o);
int template_save_run(struct opts *o);
int template_load_run(struct opts *o);
int template_warm_run(struct opts *o);
/* Each returns the exit status. */
int template_agent_build(const char *name, bool force);
int template_agent_update(struct opts *o);
