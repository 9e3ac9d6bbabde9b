/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/conf.h"
#include "lib/base/mem.h"

static const char *const effects[RULE_EFFECTS] = {
	[RULE_DENY] = "deny", [RULE_ALLOW] = "allow", [RULE_ASK] = "ask"};

static const struct {
	const char *name, *action;
} kinds[RULE_KINDS] = {
	[RULE_NETWORK] = {"network", "net:connect:tcp"},
	[RULE_HTTP] = {"http", "http:request"},
	[RULE_GIT] = {"git", "git:request"},
	[RULE_API] = {"api", "api:request"},
};
/* Of later versions. */
static const char *const later[] = {"aws", "kube", "sql", "mcp", "model"};

const char *rule_effect_name(enum rule_effect effect)
{
	return effects[effect];
}

const char *rule_kind_name(enum rule_kind kind)
{
	return kinds[kind].name;
}

const char *rule_action_name(enum rule_kind kind)
{
	return kinds[kind].action;
}

enum effect_kind rule_request_kind(enum rule_kind kind)
{
	static const enum effect_kind of[RULE_KINDS] = {
		[RULE_HTTP] = EFFECT_HTTP, [RULE_GIT] = EFFECT_GIT, [RULE_API] = EFFECT_API};

	return of[kind];
}

void rule_done(struct rule *rule)
{
	for (size_t i = 0; i < rule->n_net; i++)
		netrule_done(&rule->net[i]);
	free(rule->net);
	effect_terms_done(&rule->terms);
	free(rule->sandbox);
	free(rule->id);
	free(rule->origin);
	free(rule->comment);
	*rule = (struct rule){0};
}

bool rule_is_word(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			!memchr(".-_:", c, 4))
			return false;
	}
	return s.n > 0 && s.n <= RULE_MAX_WORD;
}

bool rule_is_comment(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return s.n > 0 && s.n <= RULE_MAX_COMMENT && s.p[0] != ' ' && s.p[s.n - 1] != ' ';
}

static int find_word(struct slice word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq_str(word, list[i]))
			return (int)i;
	return -ENOENT;
}

/* For messages: at most 60 bytes, printable ones. */
static void show_rule(struct slice s, char *buf, size_t size)
{
	size_t n = MIN(s.n, size - 1);

	for (size_t i = 0; i < n; i++)
		buf[i] = s.p[i] < 0x20 || s.p[i] >= 0x7f ? '?' : (char)s.p[i];
	buf[n] = '\0';
}

static int add_resource(struct rule *rule, struct slice text, struct err *err)
{
	char word[61];
	int r;

	show_rule(text, word, sizeof(word));
	if (rule->n_net == RULE_MAX_RESOURCES)
		return err_set(
			err, -E2BIG, "more than %d resources in one rule", RULE_MAX_RESOURCES);
	rule->net = xrealloc(rule->net, (rule->n_net + 1) * sizeof(rule->net[0]));
	if (rule->kind == RULE_NETWORK)
		r = netrule_parse(text, &rule->net[rule->n_net], err);
	else
		r = netrule_parse_target(
			rule_request_kind(rule->kind), text, &rule->net[rule->n_net], err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", word);
	rule->n_net++;
	return 0;
}

/* International names grow when they become canonical. */
static int check_length(const struct rule *rule, struct err *err)
{
	AUTO_FREE char *text = rule_print_what(rule);

	return strlen(text) <= RULE_MAX_LIST
		       ? 0
		       : err_set(err, -E2BIG, "the resources and options are longer than %d bytes",
				 RULE_MAX_LIST);
}

static int add_resources(struct rule *rule, struct slice list, struct err *err)
{
	for (;;) {
		const uint8_t *comma = list.n ? memchr(list.p, ',', list.n) : NULL;
		size_t n = comma ? (size_t)(comma - list.p) : list.n;
		int r = add_resource(rule, slice_of(list.p, n), err);

		if (r < 0)
			return r;
		if (!comma)
			return 0;
		list = slice_of(list.p + n + 1, list.n - n - 1);
	}
}

int rule_kind_find(struct slice word, enum rule_kind *ret, struct err *err)
{
	char shown[61];

	for (size_t i = 0; i < RULE_KINDS; i++)
		if (slice_eq_str(word, kinds[i].name)) {
			*ret = (enum rule_kind)i;
			return 0;
		}
	for (size_t i = 0; i < ARRAY_LEN(later); i++)
		if (slice_eq_str(word, later[i]))
			return err_set(err, -ENOTSUP, "rules of kind '%s' are not supported yet",
				later[i]);
	show_rule(word, shown, sizeof(shown));
	return err_set(err, -ENOENT,
		"unknown kind of rule '%s': expected network, http, git or api", shown);
}

/* The word is an option of the rule's kind. -ENOENT without a message: it is not. */
static int take_term(struct rule *rule, struct slice word, struct slice *rest, struct err *err)
{
	enum effect_kind kind = rule_request_kind(rule->kind);
	enum effect_term_kind which;
	int r = rule->kind == RULE_NETWORK ? -ENOENT : effect_terms_find(kind, word, &which, err);

	return r < 0 ? r : effect_terms_add(&rule->terms, kind, which, conf_word(rest), err);
}

/* After the last option. */
static int check_whole(const struct rule *rule, struct err *err)
{
	int r = check_length(rule, err);

	if (r < 0)
		return r;
	if (rule->kind == RULE_NETWORK)
		return rule->effect != RULE_ASK
			       ? 0
			       : err_set(err, -EINVAL,
					 "ask rules are for http, git and api, not for network");
	return effect_terms_finish(
		&rule->terms, rule_request_kind(rule->kind), rule->effect != RULE_DENY, err);
}

static int add_terms(struct rule *rule, struct slice terms, struct err *err)
{
	struct slice word;
	char shown[61];
	int r = 0;

	for (word = conf_word(&terms); r == 0 && word.n; word = conf_word(&terms)) {
		r = take_term(rule, word, &terms, err);
		show_rule(word, shown, sizeof(shown));
		if (r == -ENOENT)
			r = err_set(err, -EINVAL, "unknown option '%s' of a rule of kind %s", shown,
				rule_kind_name(rule->kind));
	}
	return r;
}

int rule_make_terms(enum rule_effect effect, enum rule_kind kind, struct slice resources,
	struct slice terms, struct rule *ret, struct err *err)
{
	AUTO_RULE struct rule rule = {.effect = effect, .kind = kind};
	int r = add_resources(&rule, resources, err);

	if (r == 0)
		r = add_terms(&rule, terms, err);
	if (r == 0)
		r = check_whole(&rule, err);
	if (r < 0)
		return r;
	*ret = rule;
	rule = (struct rule){0};
	return 0;
}

int rule_make(enum rule_effect effect, enum rule_kind kind, struct slice resources,
	struct rule *ret, struct err *err)
{
	return rule_make_terms(effect, kind, resources, slice_from_str(""), ret, err);
}

static int set_word(char **to, const char *option, struct slice word, struct err *err)
{
	if (*to)
		return err_set(err, -EINVAL, "duplicate option '%s'", option);
	if (!rule_is_word(word))
		return err_set(err, -EINVAL,
			"expected one word of letters, digits, '.', '-', '_' and ':' after '%s'",
			option);
	*to = xstrndup((const char *)word.p, word.n);
	return 0;
}

static int set_time(uint64_t *to, const char *option, struct slice word, struct err *err)
{
	if (*to)
		return err_set(err, -EINVAL, "duplicate option '%s'", option);
	if (rule_parse_time(word, to) < 0)
		return err_set(err, -EINVAL,
			"expected a time such as 2026-12-31T23:59:59Z after '%s'", option);
	return 0;
}

static int take_option(struct rule *rule, struct slice word, struct slice *rest, struct err *err)
{
	char shown[61];
	int r = take_term(rule, word, rest, err);

	if (r != -ENOENT)
		return r;
	if (slice_eq_str(word, "for")) {
		if (!slice_eq_str(conf_word(rest), "sandbox"))
			return err_set(err, -EINVAL, "expected 'sandbox' and a name after 'for'");
		return set_word(&rule->sandbox, "for sandbox", conf_word(rest), err);
	}
	if (slice_eq_str(word, "until"))
		return set_time(&rule->until_ms, "until", conf_word(rest), err);
	if (slice_eq_str(word, "id"))
		return set_word(&rule->id, "id", conf_word(rest), err);
	if (slice_eq_str(word, "from"))
		return set_word(&rule->origin, "from", conf_word(rest), err);
	if (slice_eq_str(word, "created"))
		return set_time(&rule->created_ms, "created", conf_word(rest), err);
	show_rule(word, shown, sizeof(shown));
	return err_set(err, -EINVAL,
		"unknown option '%s': expected 'for sandbox', 'until', 'id', 'from' or 'created'",
		shown);
}

int rule_parse(struct slice line, struct rule *ret, struct err *err)
{
	AUTO_RULE struct rule rule = {0};
	struct slice word = conf_word(&line);
	char shown[61];
	int r = find_word(word, effects, RULE_EFFECTS);

	show_rule(word, shown, sizeof(shown));
	if (r < 0)
		return err_set(err, -EINVAL, "unknown word '%s': expected 'allow', 'deny' or 'ask'",
			shown);
	rule.effect = (enum rule_effect)r;
	r = rule_kind_find(conf_word(&line), &rule.kind, err);
	if (r < 0)
		return -EINVAL;
	r = add_resources(&rule, conf_word(&line), err);
	for (word = conf_word(&line); r == 0 && word.n; word = conf_word(&line))
		r = take_option(&rule, word, &line, err);
	if (r == 0)
		r = check_whole(&rule, err);
	if (r < 0)
		return r;
	*ret = rule;
	rule = (struct rule){0};
	return 0;
}

bool rule_is_for(const struct rule *rule, const char *sandbox)
{
	return !rule->sandbox || (sandbox && strcmp(rule->sandbox, sandbox) == 0);
}

bool rule_is_over(const struct rule *rule, uint64_t now_ms)
{
	return rule->until_ms && now_ms >= rule->until_ms;
}

size_t rule_get_ports(const struct rule *rule, const struct netrule *net, struct netrule_ports *ret)
{
	return netrule_get_ports(net, rule->effect != RULE_ALLOW, ret);
}

static bool nets_may_meet(const struct rule *a, const struct netrule *x, const struct rule *b,
	const struct netrule *y)
{
	struct netrule_ports p[NETRULE_MAX_PORTS], q[NETRULE_MAX_PORTS];
	size_t n = rule_get_ports(a, x, p), k = rule_get_ports(b, y, q);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < k; j++)
			if (p[i].lo <= q[j].hi && q[j].lo <= p[i].hi)
				return netrule_may_meet(x, y);
	return false;
}

bool rule_may_meet(const struct rule *a, const struct rule *b)
{
	if (a->kind != b->kind || (a->sandbox && b->sandbox && strcmp(a->sandbox, b->sandbox) != 0))
		return false;
	for (size_t i = 0; i < a->n_net; i++)
		for (size_t j = 0; j < b->n_net; j++)
			if (nets_may_meet(a, &a->net[i], b, &b->net[j]))
				return true;
	return false;
}
