/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/conf.h"
#include "lib/base/mem.h"

void rules_done(struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		rule_done(&rules->rule[i]);
	for (size_t i = 0; i < rules->n_groups; i++) {
		free(rules->group[i].name);
		free(rules->group[i].comment);
	}
	free(rules->rule);
	free(rules->group);
	*rules = (struct rules){0};
}

int rules_add(struct rules *rules, struct rule *rule, struct err *err)
{
	if (rules->n_resources + rule->n_net > RULES_MAX_RESOURCES)
		return err_set(
			err, -E2BIG, "more than %u resources in one policy", RULES_MAX_RESOURCES);
	if (rules->n == rules->size) {
		rules->size = rules->size ? rules->size * 2 : 16;
		rules->rule = xrealloc(rules->rule, rules->size * sizeof(rules->rule[0]));
	}
	rules->n_resources += rule->n_net;
	rules->rule[rules->n++] = *rule;
	*rule = (struct rule){0};
	return 0;
}

/* ---- reading ---- */

struct reader {
	struct rules rules;
	struct conf c;
	size_t group; /* in which rules are now, from 1 */
};

static int take_comment(struct slice comment, char **ret, struct err *err)
{
	if (comment.n == 0)
		return 0;
	if (!rule_is_comment(comment))
		return err_set(err, -EINVAL,
			"the comment is longer than %d bytes or contains a tab", RULE_MAX_COMMENT);
	*ret = xstrndup((const char *)comment.p, comment.n);
	return 0;
}

static int take_group(struct reader *rd, struct slice name, struct slice comment, struct err *err)
{
	struct rules *rules = &rd->rules;
	struct rules_group group = {0};
	int r;

	if (!rule_is_word(name))
		return err_set(err, -EINVAL, "invalid group name: expected one word");
	for (size_t i = 0; i < rules->n_groups; i++)
		if (slice_eq_str(name, rules->group[i].name))
			return err_set(
				err, -EEXIST, "group '%s' already exists", rules->group[i].name);
	if (rules->n_groups == RULES_MAX_GROUPS)
		return err_set(err, -E2BIG, "more than %d groups", RULES_MAX_GROUPS);
	r = take_comment(comment, &group.comment, err);
	if (r < 0)
		return r;
	group.name = xstrndup((const char *)name.p, name.n);
	rules->group = xrealloc(rules->group, (rules->n_groups + 1) * sizeof(rules->group[0]));
	rules->group[rules->n_groups++] = group;
	rd->group = rules->n_groups;
	return 0;
}

static int take_rule(struct reader *rd, struct slice line, struct slice comment, struct err *err)
{
	AUTO_RULE struct rule rule = {0};
	int r = rule_parse(line, &rule, err);

	if (r < 0)
		return r;
	if (rule.kind != RULE_NETWORK && !rd->c.is_second)
		return err_set(err, -EINVAL, "a rule of kind %s: the first line must be '%s'",
			rule_kind_name(rule.kind), rd->c.form->second);
	rule.group = rd->group;
	rule.line = rd->c.line;
	r = take_comment(comment, &rule.comment, err);
	if (r < 0)
		return r;
	return rules_add(&rd->rules, &rule, err);
}

static int take_line(struct reader *rd, struct slice line, struct err *err)
{
	struct slice comment = rd->c.comment;

	if (line.n > 6 && memcmp(line.p, "group ", 6) == 0)
		return take_group(rd, slice_trim(slice_of(line.p + 6, line.n - 6)), comment, err);
	return take_rule(rd, line, comment, err);
}

int rules_decode(struct slice text, const char *name, struct rules *ret, struct err *err)
{
	static const struct conf_form form = {.what = "a policy",
		.first = "policy 1",
		.second = "policy 2",
		.max_bytes = RULES_MAX_BYTES,
		.max_line = RULE_MAX_LINE};
	struct reader rd = {0};
	struct slice line;
	int r = conf_init(&rd.c, &form, text, name, err);

	if (r < 0)
		return r;
	while ((r = conf_next(&rd.c, &line, err)) > 0) {
		r = take_line(&rd, line, err);
		if (r < 0)
			break;
	}
	if (r < 0) {
		rules_done(&rd.rules);
		return conf_fail(&rd.c, r, err);
	}
	*ret = rd.rules;
	return 0;
}

/* ---- writing ---- */

static void write_group(FILE *f, const struct rules *rules, size_t group, enum rule_print what)
{
	if (group > 0) {
		const struct rules_group *g = &rules->group[group - 1];

		(void)fprintf(f, "\ngroup %s", g->name);
		if (g->comment)
			(void)fprintf(f, "  # %s", g->comment);
		(void)fputc('\n', f);
	}
	for (size_t i = 0; i < rules->n; i++) {
		AUTO_FREE char *line = NULL;

		if (rules->rule[i].group != group)
			continue;
		line = rule_print(&rules->rule[i], what);
		(void)fprintf(f, "%s\n", line);
	}
}

bool rules_has_requests(const struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		if (rules->rule[i].kind != RULE_NETWORK)
			return true;
	return false;
}

char *rules_encode(const struct rules *rules, enum rule_print what)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	(void)fprintf(f, "policy %d\n", rules_has_requests(rules) ? 2 : 1);
	for (size_t g = 0; g <= rules->n_groups; g++)
		write_group(f, rules, g, what);
	(void)fprintf(f, "\nend\n");
	if (fclose(f) != 0)
		abort();
	return text;
}
