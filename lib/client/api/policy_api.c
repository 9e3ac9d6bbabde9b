/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_api.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/rules/policy/rule.h"
#include "lib/client/cli/form.h"

const char *const policy_preset_names[] = {"allow-all", "balanced", "deny-all", NULL};

int policy_check_resources(const char *list, struct problem *p)
{
	AUTO_RULE struct rule rule = {0};

	return rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(list), &rule, &p->err);
}

char *policy_shell_word(const char *s)
{
	size_t plain = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 ".,:/@_-");

	return s[plain] || !s[0] ? xasprintf("'%s'", s) : xstrdup(s);
}

int policy_add(const struct policy_wish *w, json_t **ret, struct problem *p)
{
	AUTO_JSON json_t *body =
		json_pack("{s:s, s:s}", "effect", w->effect, "resources", w->resources);

	if (!body)
		return err_set(&p->err, -EINVAL, "the resources are not UTF-8");
	if (w->kind)
		(void)json_object_set_new(body, "kind", json_string(w->kind));
	if (w->options && w->options[0])
		(void)json_object_set_new(body, "options", json_string(w->options));
	if (w->sandbox)
		(void)json_object_set_new(body, "sandbox", json_string(w->sandbox));
	if (w->comment)
		(void)json_object_set_new(body, "comment", json_string(w->comment));
	if (w->origin)
		(void)json_object_set_new(body, "origin", json_string(w->origin));
	if (w->for_ms)
		(void)json_object_set_new(body, "for_ms", json_integer((json_int_t)w->for_ms));
	return api_call("POST", "/v1/policy/rules", body, POLICY_TIMEOUT_MS, ret, p);
}

void policy_name(const char *group, const char *origin, char *buf, size_t size)
{
	if (!origin)
		origin = "file";
	if (strncmp(origin, "preset:", 7) == 0)
		(void)snprintf(buf, size, "%s", origin + 7);
	else if (group)
		(void)snprintf(buf, size, "%s", group);
	else
		(void)snprintf(buf, size, "%s", strcmp(origin, "create") == 0 ? "local" : origin);
}

static const char *action_of(const char *kind)
{
	enum rule_kind k = RULE_NETWORK;

	return rule_action_name(
		rule_kind_find(slice_from_str(kind), &k, NULL) < 0 ? RULE_NETWORK : k);
}

static json_t *rule_form(const json_t *rule)
{
	static const char *const same[] = {
		"options", "id", "group", "sandbox", "resources", "origin", "comment", "text"};
	const char *group = json_string_value(json_object_get(rule, "group")),
		   *origin = json_string_value(json_object_get(rule, "origin")),
		   *sandbox = api_str(rule, "sandbox");
	uint64_t until = (uint64_t)api_int(rule, "until");
	AUTO_FREE char *scope = sandbox[0] ? xasprintf("sandbox:%s", sandbox) : xstrdup("global");
	char policy[RULE_MAX_WORD + 1];
	json_t *o;

	policy_name(group, origin, policy, sizeof(policy));
	o = json_pack("{s:s, s:s, s:s, s:[s], s:s, s:o, s:o, s:s}", "policy_id", policy, "scope",
		scope, "resource_type", api_str(rule, "kind"), "actions",
		action_of(api_str(rule, "kind")), "decision", api_str(rule, "effect"), "created",
		form_time((uint64_t)api_int(rule, "created")), "until", form_time(until), "status",
		until && clock_wall_ms() >= until ? "expired" : "active");
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		(void)json_object_set(o, same[i], json_object_get(rule, same[i]));
	return o;
}

void policy_answer_form(json_t *answer)
{
	static const char *const lists[] = {"overrides", "denied_by", "removed"};
	const json_t *rule = json_object_get(answer, "rule");

	if (rule)
		(void)json_object_set_new(answer, "rule", rule_form(rule));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		json_t *list = json_object_get(answer, lists[i]);

		for (size_t k = 0; k < json_array_size(list); k++)
			(void)json_array_set_new(list, k, rule_form(json_array_get(list, k)));
	}
}

static void list_rules(const json_t *list, long long n)
{
	const json_t *rule;
	size_t i;

	json_array_foreach (list, i, rule)
		ui_note("  %s  %s", api_str(rule, "id"), api_str(rule, "text"));
	if (n > (long long)json_array_size(list))
		ui_note("  ... and %lld more", n - (long long)json_array_size(list));
}

/* The way out of a deny: deny-all without its lock when it is the preset's, else its removal. */
static void hint_at_deny(const json_t *deny)
{
	if (strcmp(api_str(deny, "origin"), "preset:deny-all") == 0)
		ui_hint("sbx policy set-default deny-all");
	else
		ui_hint("sbx policy rm network --id %s", api_str(deny, "id"));
}

void policy_say_conflicts(const json_t *answer)
{
	const json_t *denied_by = json_object_get(answer, "denied_by");
	long long over = api_int(answer, "n_overrides"), under = api_int(answer, "n_denied_by");

	if (over > 0) {
		ui_note("The new deny rule overrides %lld allow rule%s%s:", over,
			over == 1 ? "" : "s", over == 1 ? "" : " where they overlap");
		list_rules(json_object_get(answer, "overrides"), over);
	}
	if (json_is_true(json_object_get(answer, "no_effect"))) {
		const json_t *deny = json_array_get(denied_by, 0);

		ui_warning(
			"'%s' has no effect: rule %s (%s) denies it, and deny rules take precedence",
			api_str(json_object_get(answer, "rule"), "text"), api_str(deny, "id"),
			api_str(deny, "text"));
		hint_at_deny(deny);
	} else if (under > 0) {
		ui_note("%s:", under == 1 ? "A deny rule takes precedence where they overlap"
					  : "Deny rules take precedence where they overlap");
		list_rules(denied_by, under);
	}
}

void policy_say_governed(const json_t *answer)
{
	bool is_api = strcmp(api_str(json_object_get(answer, "rule"), "kind"), "api") == 0;
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(answer, "ungoverned"), i, one)
		ui_note("%s is no longer governed: the network rules decide about it",
			json_string_value(one));
	json_array_foreach (json_object_get(answer, "governs"), i, one)
		ui_note("%s%s is now governed: only requests that rules about them permit pass",
			is_api ? "service " : "", json_string_value(one));
}

void policy_say_not_taken(const json_t *answer)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(answer, "not_taken"), i, one) {
		ui_warning("sandbox '%s' has not applied the new policy: %s",
			api_str(one, "sandbox"), api_str(one, "reason"));
		ui_hint("sbx restart %s", api_str(one, "sandbox"));
	}
}

/* What the user allowed under a lock is allowed in earnest when the lock goes. */
static void say_effective(const json_t *answer, FILE *out)
{
	const json_t *list = json_object_get(answer, "effective"), *rule;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	(void)fprintf(out, "Rules that had no effect before and take effect now:\n");
	json_array_foreach (list, i, rule) {
		(void)fprintf(out, "  %s  %s\n", api_str(rule, "id"), api_str(rule, "text"));
	}
}

int policy_set_preset(const char *preset, bool lock, FILE *out, struct problem *p)
{
	AUTO_JSON json_t *body = json_pack("{s:s, s:b}", "preset", preset, "lock", lock);
	AUTO_JSON json_t *answer = NULL;
	long long own, useless, preset_rules;
	int r = api_call("PUT", "/v1/policy", body, POLICY_TIMEOUT_MS, &answer, p);

	if (r < 0)
		return r;
	own = api_int(answer, "own");
	useless = api_int(answer, "without_effect");
	preset_rules = api_int(answer, "rules") - own;
	(void)fprintf(out, "%s Policy set to %s%s for all sandboxes: %lld rule%s\n", ui_tick(),
		preset, lock ? " (locked)" : "", preset_rules, preset_rules == 1 ? "" : "s");
	if (own > 0)
		(void)fprintf(out,
			"Your own rules are kept: %lld. List them with: sbx policy ls --wide\n",
			own);
	say_effective(answer, out);
	(void)fflush(out);
	if (useless > 0)
		ui_warning("%lld of your allow rules %s no effect: deny rules take precedence",
			useless, useless == 1 ? "has" : "have");
	policy_say_not_taken(answer);
	return 0;
}

bool policy_is_there(void)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy");

	return access(path, F_OK) == 0;
}

const char *policy_ask_preset(void)
{
	char answer[32];

	ui_note("Choose the network policy for all sandboxes:");
	ui_note("%s", "");
	ui_note("  1. allow-all   all public hosts on all ports; private addresses stay blocked");
	ui_note("  2. balanced    hosts for software development: forges, packages, documentation");
	ui_note("  3. deny-all    no hosts until you allow them");
	ui_note("%s", "");
	ui_note("Change it later with: sbx policy set-default, allow, deny, rm");
	for (int tries = 0; tries < 3; tries++) {
		if (!ui_ask(answer, sizeof(answer), "1, 2 or 3 (default: 2, balanced): "))
			return NULL;
		if (!answer[0])
			return policy_preset_names[1];
		for (size_t i = 0; policy_preset_names[i]; i++)
			if (strcmp(answer, policy_preset_names[i]) == 0 ||
				(answer[0] == (char)('1' + i) && !answer[1]))
				return policy_preset_names[i];
		ui_note("Invalid choice '%s'.", answer);
	}
	return NULL;
}

int policy_require(struct problem *p)
{
	const char *preset;

	if (policy_is_there())
		return 0;
	(void)err_set(&p->err, -ENOENT,
		"no network policy is set: choose one of the presets balanced, deny-all and allow-all");
	(void)problem_hint(p, -ENOENT, "sbx policy set-default balanced");
	if (!ui_can_ask())
		return -ENOENT;
	preset = policy_ask_preset();
	if (!preset)
		return -ENOENT;
	*p = (struct problem){0};
	return policy_set_preset(preset, false, stderr, p);
}
