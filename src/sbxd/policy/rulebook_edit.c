/* SPDX-License-Identifier: Apache-2.0 */
#include "rulebook_edit.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define MAX_SHOWN 200

const char *const rulebook_presets[RULEBOOK_N_PRESETS + 1] = {
	"allow-all", "balanced", "deny-all", NULL};

bool rulebook_is_preset(const char *name)
{
	for (size_t i = 0; i < RULEBOOK_N_PRESETS; i++)
		if (strcmp(rulebook_presets[i], name) == 0)
			return true;
	return false;
}

const char *rulebook_preset_of_group(const char *group)
{
	for (size_t i = 0; i < RULEBOOK_N_PRESETS; i++) {
		size_t n = strlen(rulebook_presets[i]);

		if (strncmp(group, rulebook_presets[i], n) == 0 && group[n] == ':')
			return rulebook_presets[i];
	}
	return NULL;
}

static const char *preset_of(const struct rules *rules, const struct rule *rule)
{
	return rule->group ? rulebook_preset_of_group(rules->group[rule->group - 1].name) : NULL;
}

const char *rulebook_preset(const struct rules *rules)
{
	for (size_t i = 0; i < rules->n_groups; i++)
		if (rulebook_preset_of_group(rules->group[i].name))
			return rulebook_preset_of_group(rules->group[i].name);
	return NULL;
}

bool rulebook_is_locked(const struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		const char *preset = preset_of(rules, &rules->rule[i]);

		if (preset && strcmp(preset, "deny-all") == 0 && rules->rule[i].effect == RULE_DENY)
			return true;
	}
	return false;
}

const struct rule *rulebook_find(const struct rules *rules, const char *id)
{
	for (size_t i = 0; i < rules->n; i++)
		if (rules->rule[i].id && strcmp(rules->rule[i].id, id) == 0)
			return &rules->rule[i];
	return NULL;
}

static bool has_scope(const struct rule *rule, const char *sandbox)
{
	return sandbox ? rule->sandbox && strcmp(rule->sandbox, sandbox) == 0 : !rule->sandbox;
}

static bool same_net(const struct netrule *a, const struct netrule *b)
{
	char x[NETRULE_MAX_TEXT], y[NETRULE_MAX_TEXT];

	if (a->form != b->form || a->n_name != b->n_name || a->ports.lo != b->ports.lo ||
		a->ports.hi != b->ports.hi)
		return false;
	netrule_print(a, x);
	netrule_print(b, y);
	return strcmp(x, y) == 0;
}

static bool same_terms(const struct rule *a, const struct rule *b)
{
	AUTO_FREE char *x = rule_print_what(a), *y = rule_print_what(b);

	return strcmp(x, y) == 0;
}

const struct rule *rulebook_find_same(const struct rules *rules, const struct rule *rule)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *r = &rules->rule[i];
		size_t k = 0;

		if (r->effect != rule->effect || r->kind != rule->kind || r->n_net != rule->n_net ||
			r->until_ms != rule->until_ms || !has_scope(r, rule->sandbox))
			continue;
		while (k < r->n_net && same_net(&r->net[k], &rule->net[k]))
			k++;
		if (k == r->n_net && (r->kind == RULE_NETWORK || same_terms(r, rule)))
			return r;
	}
	return NULL;
}

/* ---- taking out ---- */

struct rule rulebook_copy(const struct rule *rule)
{
	AUTO_FREE char *line = rule_print(rule, RULE_PRINT_ALL);
	struct rule copy = {0};

	line[strlen(line) - (rule->comment ? strlen(rule->comment) + 4 : 0)] = '\0';
	/* Formatting and parsing must be inverse. */
	if (rule_parse(slice_from_str(line), &copy, NULL) < 0)
		abort();
	copy.comment = rule->comment ? xstrdup(rule->comment) : NULL;
	copy.line = rule->line;
	return copy;
}

static bool has_net(const struct rule *rule, const struct netrule *net)
{
	for (size_t i = 0; i < rule->n_net; i++)
		if (same_net(&rule->net[i], net))
			return true;
	return false;
}

static bool is_meant(const struct rule *rule, const struct rulebook_match *m)
{
	if (m->id)
		return rule->id && strcmp(rule->id, m->id) == 0;
	return rule->kind == m->resources->kind && has_scope(rule, m->sandbox) &&
	       (m->any_effect || rule->effect == m->effect);
}

static int say_missing(const struct rulebook_match *m, const struct netrule *net, struct err *err)
{
	char text[NETRULE_MAX_TEXT];

	if (!net)
		return err_set(err, -ENOENT, "rule '%.64s' not found", m->id);
	netrule_print(net, text);
	return err_set(err, -ENOENT, "%s%srule for %.*s%s%s not found",
		m->any_effect ? "" : rule_effect_name(m->effect), m->any_effect ? "" : " ",
		MAX_SHOWN, text, m->sandbox ? " of sandbox " : " for all sandboxes",
		m->sandbox ? m->sandbox : "");
}

/* Each named id or resource must exist, or nothing is changed. */
static int check_there(const struct rules *rules, const struct rulebook_match *m, struct err *err)
{
	if (m->id)
		return rulebook_find(rules, m->id) ? 0 : say_missing(m, NULL, err);
	for (size_t k = 0; k < m->resources->n_net; k++) {
		const struct netrule *net = &m->resources->net[k];
		size_t i = 0;

		while (i < rules->n &&
			!(is_meant(&rules->rule[i], m) && has_net(&rules->rule[i], net)))
			i++;
		if (i == rules->n)
			return say_missing(m, net, err);
	}
	return 0;
}

static size_t count_wanted(const struct rule *rule, const struct rule *what)
{
	size_t n = 0;

	for (size_t i = 0; i < rule->n_net; i++)
		n += has_net(what, &rule->net[i]);
	return n;
}

static void take_nets(struct rule *rule, const struct rule *what)
{
	size_t to = 0;

	for (size_t i = 0; i < rule->n_net; i++) {
		if (has_net(what, &rule->net[i]))
			netrule_done(&rule->net[i]);
		else
			rule->net[to++] = rule->net[i];
	}
	rule->n_net = to;
}

/* Keeps the rules that match `keep`, in one pass. */
static void filter_rules(
	struct rules *rules, bool (*keep)(const struct rule *, const void *), const void *arg)
{
	size_t to = 0;

	for (size_t i = 0; i < rules->n; i++) {
		struct rule *rule = &rules->rule[i];

		if (keep(rule, arg)) {
			rules->rule[to++] = *rule;
		} else {
			rules->n_resources -= rule->n_net;
			rule_done(rule);
		}
	}
	rules->n = to;
}

static bool has_resources(const struct rule *rule, const void *arg)
{
	return rule->n_net > 0;
}

static void keep_old(struct rules *old, const struct rule *rule)
{
	struct rule copy = rulebook_copy(rule);

	/* At most as large as the source list, which was within the limits. */
	if (rules_add(old, &copy, NULL) < 0)
		abort();
}

int rulebook_remove(
	struct rules *rules, const struct rulebook_match *m, struct rules *ret_old, struct err *err)
{
	int r = check_there(rules, m, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < rules->n; i++) {
		struct rule *rule = &rules->rule[i];
		const struct rule *what = m->id ? rule : m->resources;
		size_t n = is_meant(rule, m) ? count_wanted(rule, what) : 0;

		if (n == 0)
			continue;
		keep_old(ret_old, rule);
		rules->n_resources -= n;
		if (n < rule->n_net) {
			take_nets(rule, what);
			continue;
		}
		for (size_t k = 0; k < rule->n_net; k++)
			netrule_done(&rule->net[k]);
		rule->n_net = 0;
	}
	filter_rules(rules, has_resources, NULL);
	return 0;
}

size_t rulebook_count_scope(const struct rules *rules, const char *sandbox)
{
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++)
		n += has_scope(&rules->rule[i], sandbox);
	return n;
}

static bool is_of_others(const struct rule *rule, const void *sandbox)
{
	return !has_scope(rule, sandbox);
}

size_t rulebook_move_scope(struct rules *rules, const char *sandbox, const char *to)
{
	size_t n = rulebook_count_scope(rules, sandbox);

	if (!to)
		filter_rules(rules, is_of_others, sandbox);
	for (size_t i = 0; to && i < rules->n; i++) {
		struct rule *rule = &rules->rule[i];

		if (!has_scope(rule, sandbox))
			continue;
		free(rule->sandbox);
		rule->sandbox = xstrdup(to);
	}
	return n;
}

static bool is_not_left_over(const struct rule *rule, const void *sandbox)
{
	return !has_scope(rule, sandbox) || (rule->origin && strcmp(rule->origin, "import") == 0);
}

size_t rulebook_drop_left_over(struct rules *rules, const char *sandbox)
{
	size_t before = rules->n;

	filter_rules(rules, is_not_left_over, sandbox);
	return before - rules->n;
}

static bool is_not_over(const struct rule *rule, const void *now_ms)
{
	return !rule_is_over(rule, *(const uint64_t *)now_ms);
}

void rulebook_drop_over(struct rules *rules, uint64_t now_ms)
{
	filter_rules(rules, is_not_over, &now_ms);
}

/* ---- presets ---- */

/* Groups that are not a preset's stay; map has their new numbers, 0 for removed ones. */
static void drop_preset_groups(struct rules *rules, size_t *map)
{
	size_t to = 0;

	for (size_t i = 0; i < rules->n_groups; i++) {
		struct rules_group *g = &rules->group[i];

		map[i + 1] = 0;
		if (rulebook_preset_of_group(g->name)) {
			free(g->name);
			free(g->comment);
		} else {
			rules->group[to++] = *g;
			map[i + 1] = to;
		}
	}
	rules->n_groups = to;
}

struct old_preset {
	const struct rules *rules;
};

static bool is_own(const struct rule *rule, const void *arg)
{
	const struct old_preset *o = arg;

	return !preset_of(o->rules, rule);
}

static int append_groups(
	struct rules *rules, const struct rules *preset, const char *name, struct err *err)
{
	if (rules->n_groups + preset->n_groups > RULES_MAX_GROUPS)
		return err_set(err, -E2BIG, "more than %d groups", RULES_MAX_GROUPS);
	rules->group = xrealloc(
		rules->group, (rules->n_groups + preset->n_groups + 1) * sizeof(rules->group[0]));
	for (size_t i = 0; i < preset->n_groups; i++) {
		const struct rules_group *g = &preset->group[i];
		char *word = xasprintf("%s:%s", name, g->name);

		if (!rule_is_word(slice_from_str(word))) {
			free(word);
			return err_set(
				err, -EINVAL, "the name of the group '%s' is too long", g->name);
		}
		rules->group[rules->n_groups++] = (struct rules_group){
			.name = word, .comment = g->comment ? xstrdup(g->comment) : NULL};
	}
	return 0;
}

int rulebook_set_preset(
	struct rules *rules, struct rules *preset, const char *name, struct err *err)
{
	struct old_preset old = {.rules = rules};
	size_t map[RULES_MAX_GROUPS + 1] = {0}, before;
	int r = 0;

	filter_rules(rules, is_own, &old);
	drop_preset_groups(rules, map);
	for (size_t i = 0; i < rules->n; i++)
		rules->rule[i].group = map[rules->rule[i].group];
	before = rules->n_groups;
	for (size_t i = 0; i < preset->n; i++)
		if (preset->rule[i].group == 0)
			return err_set(err, -EINVAL, "preset %s: a rule has no group", name);
	r = append_groups(rules, preset, name, err);
	for (size_t i = 0; r == 0 && i < preset->n; i++) {
		preset->rule[i].group += before;
		r = rules_add(rules, &preset->rule[i], err);
	}
	rules_done(preset);
	return r;
}

/* ---- ids ---- */

void rulebook_complete(struct rules *rules, const char *origin, uint64_t now_ms)
{
	for (size_t i = 0; i < rules->n; i++) {
		struct rule *rule = &rules->rule[i];
		const char *preset = preset_of(rules, rule);

		if (!rule->id) {
			rule->id = xmalloc(RULEBOOK_ID_LEN + 1);
			str_random_hex(rule->id, RULEBOOK_ID_LEN / 2);
		}
		if (!rule->origin)
			rule->origin = preset ? xasprintf("preset:%s", preset) : xstrdup(origin);
		if (!rule->created_ms)
			rule->created_ms = now_ms;
	}
}

static int by_id(const void *a, const void *b)
{
	const struct rule *x = *(const struct rule *const *)a, *y = *(const struct rule *const *)b;
	int r = strcmp(x->id, y->id);

	return r ? r : (x->line > y->line) - (x->line < y->line);
}

int rulebook_check_ids(const struct rules *rules, struct err *err)
{
	AUTO_FREE const struct rule **list = xcalloc(rules->n + 1, sizeof(void *));
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++)
		if (rules->rule[i].id)
			list[n++] = &rules->rule[i];
	qsort(list, n, sizeof(void *), by_id);
	for (size_t i = 1; i < n; i++)
		if (strcmp(list[i - 1]->id, list[i]->id) == 0)
			return err_set(err, -EINVAL, "line %u: id '%s' already used on line %u",
				list[i]->line, list[i]->id, list[i - 1]->line);
	return 0;
}

/* ---- rules without effect ---- */

static bool covers_resource(const struct rule *deny, const struct netrule *x,
	const struct rule *allow, const struct netrule *y)
{
	struct netrule_ports p[NETRULE_MAX_PORTS], q[NETRULE_MAX_PORTS];
	size_t n = rule_get_ports(deny, x, p), k = rule_get_ports(allow, y, q);
	struct netrule a = *x, b = *y;

	for (size_t j = 0; j < k; j++) {
		size_t i = 0;

		while (i < n && !(p[i].lo <= q[j].lo && p[i].hi >= q[j].hi))
			i++;
		if (i == n)
			return false;
	}
	a.ports = b.ports = (struct netrule_ports){0};
	if (!x->path)
		return x->form == NETRULE_EVERY || same_net(&a, &b);
	return same_net(&a, &b);
}

static bool is_covered(const struct rule *deny, const struct rule *allow)
{
	for (size_t i = 0; i < allow->n_net; i++) {
		size_t k = 0;

		while (k < deny->n_net &&
			!covers_resource(deny, &deny->net[k], allow, &allow->net[i]))
			k++;
		if (k == deny->n_net)
			return false;
	}
	return true;
}

const struct rule *rulebook_covering_deny(const struct rules *rules, const struct rule *allow)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *deny = &rules->rule[i];

		if (deny->effect != RULE_DENY || deny->kind != allow->kind || deny->terms.n ||
			(deny->sandbox && !has_scope(allow, deny->sandbox)))
			continue;
		if (deny->until_ms && !(allow->until_ms && allow->until_ms <= deny->until_ms))
			continue;
		if (is_covered(deny, allow))
			return deny;
	}
	return NULL;
}
