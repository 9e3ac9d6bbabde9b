/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_policy - what the calls about the policy share.
 *
 * How      api_policy.c reads, api_policy_edit.c changes. A change is prepared, recorded in the
 *          journal and only then put in place, and the client hears when the keepers have it.
 * Trust    As api.h.
 * See      proto/PROTOCOL.api, rulebook.h, journal.h, reload_reply.h
 */
#pragma once

#include "src/sbxd/policy/policy.h"

struct json_t;
struct policy;

/* As the keeper of that sandbox reads it; NULL: for all. NULL when there is none. */
struct policy *api_load_policy(const char *sandbox);
struct json_t *api_rule_to_json(const struct rules *rules, const struct rule *rule);
