/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - `sbx policy` and `sbx api`.
 *
 * How      cmd_policy.c has the table of its commands, cmd_api.c that of `sbx api`.
 * Trust    The user's arguments and API packs; audit records in `sbx policy log`.
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_policy;
extern const struct verb verb_api;
