/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - `sbx policy`.
 *
 * How      cmd_policy.c has the table of its commands.
 * Trust    The user's arguments; audit records in `sbx policy log`.
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_policy;
