/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_policy - declarations shared by the calls about the policy.
 *
 * How      api_policy.c reads, api_policy_edit.c changes. A change is prepared, recorded in the
 *          journal and only then put in place. The client gets the reply when the keepers have
 *          applied it.
 * Trust    As api.h.
 * See      proto/PROTOCOL.api, rulebook.h, journal.h, reload_reply.h
 */
#pragma once

#include "src/sbxd/policy/policy.h"

struct conn;
struct json_t;
struct sbxd;

struct json_t *api_rule_to_json(const struct rules *rules, const struct rule *rule);
/* Returns true if these rules can be added; else replies. */
bool api_rules_check(struct sbxd *d, struct conn *c, const struct rule *v, size_t n);
/* Adds all or none of them, with one change of the policy. Takes ownership of the rules; `list`
 * gets an object for each, as in the reply of POST /v1/policy/rules. */
int api_rules_add(
	struct sbxd *d, struct rule *v, size_t n, struct json_t *list, struct err *err) MUST_CHECK;
