/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_verbs - options and functions of the commands of `sbx policy`, for its table.
 *
 * How      cmd_policy.c has the table; cmd_policy_edit.c and cmd_policy_whole.c change the policy,
 *          cmd_policy_show.c, cmd_policy_check.c and cmd_policy_log.c read it.
 * Trust    The user's arguments.
 */
#pragma once

#include "lib/client/cli/opt.h"

extern const struct opt_def policy_default_opts[], policy_add_opts[], policy_rm_opts[],
	policy_ls_opts[], policy_inspect_opts[], policy_check_opts[], policy_export_opts[],
	policy_import_opts[], policy_reset_opts[], policy_log_opts[], policy_read_only_opts[];
extern const struct opt_def policy_diff_opts[], policy_replay_opts[], policy_shrink_opts[],
	policy_used_opts[];

int policy_default_run(struct opts *o);
int policy_init_run(struct opts *o);
int policy_allow_run(struct opts *o);
/* `sbx policy check http`: decides in this process, by the file and the API packs. */
int policy_check_http(struct opts *o);
int policy_ask_run(struct opts *o);
int policy_deny_run(struct opts *o);
int policy_read_only_run(struct opts *o);
int policy_rm_run(struct opts *o);
int policy_ls_run(struct opts *o);
int policy_inspect_run(struct opts *o);
int policy_check_run(struct opts *o);
int policy_export_run(struct opts *o);
int policy_import_run(struct opts *o);
int policy_reset_run(struct opts *o);
int policy_log_run(struct opts *o);
int policy_diff_run(struct opts *o);
int policy_replay_run(struct opts *o);
int policy_shrink_run(struct opts *o);
int policy_used_run(struct opts *o);
