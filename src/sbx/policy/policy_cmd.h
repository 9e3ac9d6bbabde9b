/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_cmd - the commands of `sbx policy` that have a file of their own.
 *
 * How      cmd_policy.c has the table; it takes options and function of each from here.
 * Trust    The user's arguments.
 * See      cmd_policy_log.c
 */
#pragma once

#include "lib/client/cli/opt.h"

extern const struct opt_def policy_log_opts[];
int policy_log_run(struct opts *o);
