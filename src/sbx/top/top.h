/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top - commands that show all sandboxes with their use of the host.
 *
 * How      cmd_stats.c prints a table or JSON. usage.h measures.
 * Trust    Objects of sbxd, which have words of guests; /proc of the host.
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_stats;
