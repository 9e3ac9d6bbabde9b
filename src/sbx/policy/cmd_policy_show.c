/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/form.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/policy_file.h"
#include "policy_verbs.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/table.h"

#define MAX_SUMMARY 1024 /* rows of the short listing */

const struct opt_def policy_ls_opts[] = {
	{0, "wide", NULL, "print every rule with its id (default without a terminal)"},
	{0, "summary", NULL, "print a summary (default on a terminal)"},
	{0, "sandbox", "NAME", "print the rules that apply to this sandbox"},
	{0, "decision", "WORD", "print only allow, only deny or only ask rules"},
	{0, "json", NULL, "print JSON with every rule"},
	{0},
};
const struct opt_def policy_inspect_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

static const char *group_of(const struct rules *rules, const struct rule *rule)
{
	return rule->group ? rules->group[rule->group - 1].name : NULL;
}

/* "preset" of "preset:balanced"; "file" for a rule that was written into the file by hand. */
static void print_source(const struct rule *rule, char *buf, size_t size)
{
	const char *origin = rule->origin ? rule->origin : "file";

	(void)snprintf(buf, size, "%.*s", (int)strcspn(origin, ":"), origin);
}

static void print_policy(const struct rules *rules, const struct rule *rule, char *buf, size_t size)
{
	policy_name(group_of(rules, rule), rule->origin, buf, size);
}

static void print_scope(const struct rule *rule, const char *all, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s%s", rule->sandbox ? "sandbox:" : all,
		rule->sandbox ? rule->sandbox : "");
}

static json_t *text_or_null(const char *s)
{
	json_t *j = s ? json_string(s) : json_null();

	return j ? j : json_string("(text that is not UTF-8)");
}

static json_t *resources_to_json(const struct rule *rule)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rule->n_net; i++) {
		char text[NETRULE_MAX_TEXT];

		netrule_print(&rule->net[i], text);
		(void)json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *rule_to_json(const struct rules *rules, const struct rule *rule)
{
	AUTO_FREE char *line = rule_print(rule, RULE_PRINT_PLAIN),
		       *terms = effect_terms_print(&rule->terms, rule_request_kind(rule->kind));
	char scope[RULE_MAX_WORD + 16], policy[RULE_MAX_WORD + 1];
	json_t *o = json_object();

	print_scope(rule, "global", scope, sizeof(scope));
	print_policy(rules, rule, policy, sizeof(policy));
	(void)json_object_set_new(o, "id", text_or_null(rule->id));
	(void)json_object_set_new(o, "policy_id", json_string(policy));
	(void)json_object_set_new(o, "group", text_or_null(group_of(rules, rule)));
	(void)json_object_set_new(o, "scope", json_string(scope));
	(void)json_object_set_new(o, "sandbox", text_or_null(rule->sandbox));
	(void)json_object_set_new(o, "resource_type", json_string(rule_kind_name(rule->kind)));
	(void)json_object_set_new(o, "actions", json_pack("[s]", rule_action_name(rule->kind)));
	(void)json_object_set_new(o, "decision", json_string(rule_effect_name(rule->effect)));
	(void)json_object_set_new(o, "resources", resources_to_json(rule));
	if (terms[0])
		(void)json_object_set_new(o, "options", json_string(terms + 1));
	(void)json_object_set_new(o, "origin", text_or_null(rule->origin));
	(void)json_object_set_new(o, "created", form_time(rule->created_ms));
	(void)json_object_set_new(o, "until", form_time(rule->until_ms));
	(void)json_object_set_new(o, "status",
		json_string(rule_is_over(rule, clock_wall_ms()) ? "expired" : "active"));
	(void)json_object_set_new(o, "comment", text_or_null(rule->comment));
	(void)json_object_set_new(o, "text", text_or_null(line));
	return o;
}

/* As rulebook_is_locked of sbxd: deny-all with its deny rule. */
static bool is_locked(const struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		const char *group = group_of(rules, &rules->rule[i]);

		if (group && strncmp(group, "deny-all:", 9) == 0 &&
			rules->rule[i].effect == RULE_DENY)
			return true;
	}
	return false;
}

static void say_locked(const struct rules *rules)
{
	if (is_locked(rules))
		printf("\n"
		       "The policy is locked: allow rules have no effect. Unlock it with: sbx policy set-default deny-all\n");
}

/* ---- ls ---- */

struct listing {
	const struct rules *rules;
	const struct managed *managed;
	const char *sandbox; /* NULL: all */
	const char *decision;
};

static bool is_listed(const struct listing *l, const struct rule *rule)
{
	if (l->decision && strcmp(l->decision, rule_effect_name(rule->effect)) != 0)
		return false;
	return !l->sandbox || rule_is_for(rule, l->sandbox);
}

static json_t *list_to_json(const struct listing *l, const struct rules *rules)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rules->n; i++)
		if (is_listed(l, &rules->rule[i]))
			(void)json_array_append_new(list, rule_to_json(rules, &rules->rule[i]));
	return list;
}

static void print_managed_id(const struct rule *rule, char ret[32])
{
	(void)snprintf(ret, 32, MANAGED_ID "%u", rule->line);
}

static json_t *managed_to_json(const struct listing *l)
{
	const struct managed *m = l->managed;
	json_t *o, *list, *rule;
	size_t i, n = 0;

	if (!m->exists)
		return json_null();
	list = list_to_json(l, &m->rules);
	json_array_foreach (list, i, rule) {
		char id[32];

		while (!is_listed(l, &m->rules.rule[n]))
			n++;
		print_managed_id(&m->rules.rule[n++], id);
		(void)json_object_set_new(rule, "id", json_string(id));
		(void)json_object_set_new(rule, "origin", json_string("managed"));
		(void)json_object_set_new(rule, "policy_id", json_string("managed"));
	}
	o = json_pack("{s:s, s:s?, s:o}", "file", MANAGED_FILE, "fault",
		m->fault.text[0] ? m->fault.text : NULL, "rules", list);
	return o ? o : json_null();
}

static void print_json(const struct listing *l)
{
	AUTO_JSON json_t *whole = json_object();

	(void)json_object_set_new(whole, "managed", managed_to_json(l));
	(void)json_object_set_new(whole, "rules", list_to_json(l, l->rules));
	(void)json_object_set_new(whole, "locked", json_boolean(is_locked(l->rules)));
	api_print(whole);
}

static void say_managed(const struct managed *m)
{
	if (m->fault.text[0])
		printf("\n"
		       "All traffic is denied: the managed policy cannot be used: %s\n",
			m->fault.text);
	else if (m->exists)
		printf("\n"
		       "The managed policy %s limits all other rules: a request must be allowed by both. Only root can change it.\n",
			MANAGED_FILE);
}

static void add_wide(
	struct table *t, const struct rules *rules, const struct rule *rule, bool is_managed)
{
	AUTO_FREE char *what = rule_print_what(rule),
		       *resources = rule->kind == RULE_NETWORK
					    ? xstrdup(what)
					    : xasprintf("%s %s", rule_kind_name(rule->kind), what);
	char scope[RULE_MAX_WORD + 16], policy[RULE_MAX_WORD + 1] = "managed", until[48] = "-",
							       source[32] = "root", id[32];
	const char *cells[] = {is_managed ? id
			       : rule->id ? rule->id
					  : "-",
		policy, source, scope, rule_effect_name(rule->effect), resources, until,
		rule->comment ? rule->comment : ""};

	print_managed_id(rule, id);
	print_scope(rule, "all", scope, sizeof(scope));
	if (!is_managed) {
		print_policy(rules, rule, policy, sizeof(policy));
		print_source(rule, source, sizeof(source));
	}
	if (rule_is_over(rule, clock_wall_ms()))
		(void)snprintf(until, sizeof(until), "expired");
	else if (rule->until_ms)
		rule_print_time(rule->until_ms, until);
	table_add(t, cells);
}

static void say_no_rules(void)
{
	printf("No rules: all traffic is denied. Allow a host with: sbx policy allow "
	       "network example.com\n");
}

static void print_wide(const struct listing *l)
{
	static const char *const heading[] = {"RULE_ID", "POLICY", "SOURCE", "APPLIES TO",
		"DECISION", "RESOURCES", "UNTIL", "COMMENT"};
	CLEANUP(table_done) struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < l->managed->rules.n; i++)
		if (is_listed(l, &l->managed->rules.rule[i]))
			add_wide(&t, &l->managed->rules, &l->managed->rules.rule[i], true);
	for (size_t i = 0; i < l->rules->n; i++)
		if (is_listed(l, &l->rules->rule[i]))
			add_wide(&t, l->rules, &l->rules->rule[i], false);
	if (t.n_rows == 1)
		say_no_rules();
	else
		table_print(&t);
	say_locked(l->rules);
	say_managed(l->managed);
}

struct sum {
	char policy[RULE_MAX_WORD + 1], scope[RULE_MAX_WORD + 16], source[32];
	size_t n[RULE_EFFECTS];
	enum rule_kind kind;
};

/* The row to which a rule is added; the last one takes the excess. */
static struct sum *find_sum(struct sum *list, size_t *n, const struct sum *like)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].kind == like->kind && strcmp(list[i].policy, like->policy) == 0 &&
			strcmp(list[i].scope, like->scope) == 0 &&
			strcmp(list[i].source, like->source) == 0)
			return &list[i];
	if (*n < MAX_SUMMARY)
		list[(*n)++] = *like;
	return &list[*n - 1];
}

/* "network: 3 allow, 1 deny" */
static void print_counts(const struct sum *s, char *buf, size_t size)
{
	static const enum rule_effect order[] = {RULE_ALLOW, RULE_DENY, RULE_ASK};
	size_t n = (size_t)snprintf(buf, size, "%s:", rule_kind_name(s->kind));
	const char *before = " ";

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		if (!s->n[order[i]])
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%zu %s", before, s->n[order[i]],
			rule_effect_name(order[i]));
		before = ", ";
	}
}

static void print_sums(const struct sum *list, size_t n)
{
	static const char *const heading[] = {"POLICY", "SOURCE", "APPLIES TO", "SUMMARY"};
	CLEANUP(table_done) struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < n; i++) {
		char text[96];
		const char *cells[] = {list[i].policy, list[i].source, list[i].scope, text};

		print_counts(&list[i], text, sizeof(text));
		table_add(&t, cells);
	}
	table_print(&t);
	printf("\n"
	       "List every rule with: sbx policy ls --wide\n");
}

static void sum_managed(const struct listing *l, struct sum *list, size_t *n)
{
	for (size_t i = 0; i < l->managed->rules.n; i++) {
		const struct rule *rule = &l->managed->rules.rule[i];
		struct sum like = {
			.kind = rule->kind, .policy = "managed", .source = "root", .scope = "all"};

		if (is_listed(l, rule))
			find_sum(list, n, &like)->n[rule->effect]++;
	}
}

static void print_short(const struct listing *l)
{
	AUTO_FREE struct sum *list = xcalloc(MAX_SUMMARY, sizeof(*list));
	size_t n = 0;

	sum_managed(l, list, &n);
	for (size_t i = 0; i < l->rules->n; i++) {
		const struct rule *rule = &l->rules->rule[i];
		struct sum like = {.kind = rule->kind};

		if (!is_listed(l, rule))
			continue;
		print_policy(l->rules, rule, like.policy, sizeof(like.policy));
		print_scope(rule, "all", like.scope, sizeof(like.scope));
		print_source(rule, like.source, sizeof(like.source));
		find_sum(list, &n, &like)->n[rule->effect]++;
	}
	if (n == 0)
		say_no_rules();
	else
		print_sums(list, n);
	say_locked(l->rules);
	say_managed(l->managed);
}

/* A mistyped name must not silently list nothing. */
static int find_sandbox(struct listing *l, json_t **ret, struct problem *p)
{
	int r = l->sandbox ? sandbox_get(l->sandbox, ret, p) : 0;

	if (r == 0 && l->sandbox)
		l->sandbox = api_str(*ret, "name");
	return r;
}

int policy_ls_run(struct opts *o)
{
	AUTO_RULES struct rules rules = {0};
	AUTO_JSON json_t *sandbox = NULL;
	AUTO_MANAGED struct managed managed = {0};
	struct listing l = {.rules = &rules,
		.managed = &managed,
		.sandbox = o->args.n ? o->args.v[0] : opts_value(o, "sandbox"),
		.decision = opts_value(o, "decision")};
	struct problem p = {0};
	int r;

	if (l.decision && strcmp(l.decision, "allow") != 0 && strcmp(l.decision, "deny") != 0 &&
		strcmp(l.decision, "ask") != 0) {
		(void)err_set(&p.err, -EINVAL,
			"invalid --decision '%s': expected allow, deny or ask", l.decision);
		return ui_problem(&p, problem_usage(&p, -EINVAL, "policy ls"));
	}
	policy_file_managed(&managed);
	r = policy_file_load(&rules, &p);
	if (r == 0)
		r = find_sandbox(&l, &sandbox, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		print_json(&l);
	else if (opts_has(o, "wide") || (!opts_has(o, "summary") && !isatty(STDOUT_FILENO)))
		print_wide(&l);
	else
		print_short(&l);
	return EXIT_OK;
}

/* ---- inspect ---- */

/* By its id or an unambiguous prefix of it. */
static int find_rule(
	const struct rules *rules, const char *id, const struct rule **ret, struct problem *p)
{
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rule[i];

		if (!rule->id || !id[0] || strncmp(rule->id, id, strlen(id)) != 0)
			continue;
		*ret = rule;
		if (strcmp(rule->id, id) == 0)
			return 0;
		n++;
	}
	if (n == 1)
		return 0;
	if (n)
		(void)err_set(
			&p->err, -ENOENT, "%zu rules have an id that begins with '%s'", n, id);
	else
		(void)err_set(&p->err, -ENOENT, "rule '%s' not found", id);
	return problem_hint(p, -ENOENT, "sbx policy ls --wide");
}

static void row_show(const char *label, const char *text)
{
	printf("%-11s", label);
	ui_put(text);
	(void)putchar('\n');
}

static void print_rule(const struct rules *rules, const struct rule *rule)
{
	AUTO_FREE char *line = rule_print(rule, RULE_PRINT_PLAIN),
		       *terms = effect_terms_print(&rule->terms, rule_request_kind(rule->kind));
	char text[RULE_MAX_WORD + 16];

	row_show("rule", rule->id);
	row_show("decision", rule_effect_name(rule->effect));
	row_show("kind", rule_kind_name(rule->kind));
	for (size_t i = 0; i < rule->n_net; i++) {
		char net[NETRULE_MAX_TEXT];

		netrule_print(&rule->net[i], net);
		row_show(i == 0 ? "resources" : "", net);
	}
	if (terms[0])
		row_show("options", terms + 1);
	print_scope(rule, "all", text, sizeof(text));
	row_show("applies to", text);
	print_policy(rules, rule, text, sizeof(text));
	row_show("policy", text);
	if (rule->group)
		row_show("group", group_of(rules, rule));
	row_show("origin", rule->origin ? rule->origin : "file");
	if (rule->created_ms) {
		rule_print_time(rule->created_ms, text);
		row_show("created", text);
	}
	if (rule->until_ms) {
		rule_print_time(rule->until_ms, text);
		row_show(rule_is_over(rule, clock_wall_ms()) ? "expired" : "until", text);
	}
	if (rule->comment)
		row_show("comment", rule->comment);
	row_show("text", line);
}

int policy_inspect_run(struct opts *o)
{
	AUTO_RULES struct rules rules = {0};
	AUTO_JSON json_t *j = NULL;
	const struct rule *rule = NULL;
	struct problem p = {0};
	int r = policy_file_load(&rules, &p);

	if (r == 0)
		r = find_rule(&rules, o->args.v[0], &rule, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json")) {
		j = rule_to_json(&rules, rule);
		api_print(j);
	} else {
		print_rule(&rules, rule);
	}
	return EXIT_OK;
}
