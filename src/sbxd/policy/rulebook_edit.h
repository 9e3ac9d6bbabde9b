/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rulebook_edit - edits a list of rules. No I/O.
 *
 * How      Each function changes a struct rules in memory; rulebook.h writes it. A preset's rules
 *          are in groups named PRESET:GROUP, so that every copy of the file separates them from the
 *          user's rules and they can be replaced together. Loops over all rules are one pass.
 * Trust    Rules of the same user, or from an imported file.
 * Owns     Nothing.
 * See      rulebook_edit_test.c, proto/PROTOCOL.policy
 */
#pragma once

#include "lib/rules/policy/rules.h"

#define RULEBOOK_N_PRESETS 3
#define RULEBOOK_ID_LEN 12

extern const char *const rulebook_presets[RULEBOOK_N_PRESETS + 1]; /* NULL at the end */

/* Selects rules: by id, or by scope and optionally effect and resources. */
struct rulebook_match {
	const char *id;	     /* NULL: the other fields apply */
	const char *sandbox; /* NULL: rules for every sandbox */
	bool any_effect;
	enum rule_effect effect;
	const struct rule *resources; /* resources to remove from the rules that have them */
};

/* Without its group. */
struct rule rulebook_copy(const struct rule *rule);
bool rulebook_is_preset(const char *name);
/* Returns the preset whose groups the rules have, or NULL. deny-all has a group without rules. */
const char *rulebook_preset(const struct rules *rules);
/* deny-all with its deny rule: no allow rule has an effect. */
bool rulebook_is_locked(const struct rules *rules);
/* The preset of a group name; NULL: the user's own. */
const char *rulebook_preset_of_group(const char *group);

const struct rule *rulebook_find(const struct rules *rules, const char *id);
/* Returns a rule with the same effect, resources, scope and expiry, or NULL. */
const struct rule *rulebook_find_same(const struct rules *rules, const struct rule *rule);
/* Removes the matching rules; *ret_old gets the previous version of changed and removed ones.
 * Returns -ENOENT if an id or a resource does not exist; nothing is changed then. */
int rulebook_remove(struct rules *rules, const struct rulebook_match *m, struct rules *ret_old,
	struct err *err) MUST_CHECK;
/* Moves this sandbox's rules to `to`, or removes them if NULL. Returns their number. */
size_t rulebook_move_scope(struct rules *rules, const char *sandbox, const char *to);
/* Removes rules that a former sandbox of the same name left, before one is created. An imported
 * file may name future sandboxes; those rules stay. */
size_t rulebook_drop_left_over(struct rules *rules, const char *sandbox);
size_t rulebook_count_scope(const struct rules *rules, const char *sandbox);
void rulebook_drop_over(struct rules *rules, uint64_t now_ms);
/* Replaces the rules of any earlier preset; *preset is empty afterwards. */
int rulebook_set_preset(
	struct rules *rules, struct rules *preset, const char *name, struct err *err) MUST_CHECK;
/* Sets ids, origins and times of rules without them. */
void rulebook_complete(struct rules *rules, const char *origin, uint64_t now_ms);
/* Returns -EINVAL with the line if two rules have the same id. */
int rulebook_check_ids(const struct rules *rules, struct err *err) MUST_CHECK;
/* Returns a deny rule that covers this allow rule completely and at least as long, or NULL. */
const struct rule *rulebook_covering_deny(const struct rules *rules, const struct rule *allow);
