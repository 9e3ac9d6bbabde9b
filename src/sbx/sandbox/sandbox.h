/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox - commands that create, list, change and remove sandboxes.
 *
 * How      One cmd_<verb>.c per command. Other parts use only the PATH arguments (workspace.h).
 * Trust    The user's arguments; replies of sbxd.
 */
#pragma once

#include "workspace.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_create, verb_inspect, verb_logs, verb_ls, verb_ports, verb_prune,
	verb_rename, verb_reset, verb_restart, verb_rm, verb_run, verb_start, verb_stop,
	verb_update;
