/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind - checkpoints of a sandbox's disks, the return to one, and forks.
 *
 * How      One cmd_<verb>.c per command, thin over the API. A fork is a template without a name,
 *          and sandboxes created from it. merge.h merges layers, lasting.h and moved.h find what a
 *          rewind does not take back.
 * Trust    The user's arguments; replies of sbxd.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_checkpoint, verb_fork, verb_rewind;
