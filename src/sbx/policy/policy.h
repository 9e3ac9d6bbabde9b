/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - `sbx policy`, `sbx api`, `sbx approve` and `sbx refuse`.
 *
 * How      cmd_policy.c has the table of its commands, cmd_api.c that of `sbx api`. cmd_approve.c
 *          shows and answers requests that wait for a person (hold_answer.h, hold_text.h).
 * Trust    The user's arguments and API packs; audit records in `sbx policy log`. Requests have
 *          text of a guest.
 */
#pragma once

#include "hold_answer.h"
#include "hold_text.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_policy;
extern const struct verb verb_api;
extern const struct verb verb_approve;
extern const struct verb verb_refuse;
