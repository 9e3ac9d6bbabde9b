/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret_verbs - options and functions of the commands of `sbx secret`, for its table.
 *
 * How      cmd_secret.c has the table; cmd_secret_set.c and cmd_secret_import.c set credentials,
 *          cmd_secret_show.c lists, cmd_secret_edit.c removes and unlocks, cmd_secret_scan.c
 *          searches for them, cmd_secret_own.c permits others.
 * Trust    The user's arguments, which never hold a value.
 * See      secret_api.h
 */
#pragma once

#include "lib/client/cli/opt.h"

extern const struct opt_def secret_set_opts[], secret_custom_opts[], secret_import_opts[],
	secret_ls_opts[], secret_rm_opts[], secret_services_opts[], secret_status_opts[],
	secret_unlock_opts[], secret_scan_opts[], secret_own_opts[];

int secret_set_run(struct opts *o);
int secret_custom_run(struct opts *o);
int secret_import_run(struct opts *o);
int secret_ls_run(struct opts *o);
int secret_rm_run(struct opts *o);
int secret_services_run(struct opts *o);
int secret_status_run(struct opts *o);
int secret_unlock_run(struct opts *o);
int secret_scan_run(struct opts *o);
int secret_own_run(struct opts *o);
