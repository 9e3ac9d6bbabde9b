/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind - checkpoints of a sandbox's disks.
 *
 * How      One cmd_<verb>.c per command, thin over the API.
 * Trust    The user's arguments; replies of sbxd.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_checkpoint;
