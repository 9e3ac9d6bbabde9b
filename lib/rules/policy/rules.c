/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
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

enum where { BEFORE, INSIDE, BEHIND };

struct reader {
	struct rules rules;
	enum where where;
	unsigned line;
	size_t group; /* in which rules are now, from 1 */
};

/* A '#' begins a comment at the start of a line and behind a blank; it is cut off *line. */
static struct slice cut_comment(struct slice *line)
{
	for (size_t i = 0; i < line->n; i++) {
		if (line->p[i] == '#' &&
			(i == 0 || line->p[i - 1] == ' ' || line->p[i - 1] == '\t')) {
			struct slice comment =
				slice_trim(slice_of(line->p + i + 1, line->n - i - 1));

			*line = slice_trim(slice_of(line->p, i));
			return comment;
		}
	}
	*line = slice_trim(*line);
	return slice_of(NULL, 0);
}

static int check_bytes(struct slice line, struct err *err)
{
	if (line.n >= RULE_MAX_LINE)
		return err_set(err, -E2BIG, "longer than %d bytes", RULE_MAX_LINE - 1);
	for (size_t i = 0; i < line.n; i++)
		if ((line.p[i] < 0x20 && line.p[i] != '\t') || line.p[i] == 0x7f)
			return err_set(
				err, -EINVAL, "holds the control character 0x%02x", line.p[i]);
	return 0;
}

static int take_comment(struct slice comment, char **ret, struct err *err)
{
	if (comment.n == 0)
		return 0;
	if (!rule_is_comment(comment))
		return err_set(err, -EINVAL, "the comment is longer than %d bytes or holds a tab",
			RULE_MAX_COMMENT);
	*ret = xstrndup((const char *)comment.p, comment.n);
	return 0;
}

static int take_group(struct reader *rd, struct slice name, struct slice comment, struct err *err)
{
	struct rules *rules = &rd->rules;
	struct rules_group group = {0};
	int r;

	if (!rule_is_word(name))
		return err_set(err, -EINVAL, "a group has one word as its name");
	for (size_t i = 0; i < rules->n_groups; i++)
		if (slice_eq_str(name, rules->group[i].name))
			return err_set(err, -EEXIST, "there is a group '%s' already",
				rules->group[i].name);
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
	rule.group = rd->group;
	rule.line = rd->line;
	r = take_comment(comment, &rule.comment, err);
	if (r < 0)
		return r;
	return rules_add(&rd->rules, &rule, err);
}

static int take_line(struct reader *rd, struct slice line, struct err *err)
{
	struct slice comment;
	int r = check_bytes(line, err);

	if (r < 0)
		return r;
	comment = cut_comment(&line);
	if (line.n == 0)
		return 0;
	if (rd->where == BEHIND)
		return err_set(err, -EINVAL, "something stands behind 'end'");
	if (rd->where == BEFORE) {
		if (!slice_eq_str(line, "policy 1"))
			return err_set(err, -EINVAL, "a policy begins with the line 'policy 1'");
		rd->where = INSIDE;
		return 0;
	}
	if (slice_eq_str(line, "end")) {
		rd->where = BEHIND;
		return 0;
	}
	if (line.n > 6 && memcmp(line.p, "group ", 6) == 0)
		return take_group(rd, slice_trim(slice_of(line.p + 6, line.n - 6)), comment, err);
	return take_rule(rd, line, comment, err);
}

int rules_decode(struct slice text, const char *name, struct rules *ret, struct err *err)
{
	struct reader rd = {.where = BEFORE};
	int r = 0;

	if (text.n > RULES_MAX_BYTES)
		return err_set(err, -E2BIG, "%s: larger than %u bytes", name, RULES_MAX_BYTES);
	while (text.n && r == 0) {
		rd.line++;
		r = take_line(&rd, slice_next_line(&text), err);
	}
	if (r == 0 && rd.where != BEHIND)
		r = err_set(err, -EINVAL, "the line 'end' is missing: the file may be cut off");
	if (r < 0) {
		rules_done(&rd.rules);
		return err_wrap(err, r, "%s: line %u", name, rd.line);
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

char *rules_encode(const struct rules *rules, enum rule_print what)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	(void)fprintf(f, "policy 1\n");
	for (size_t g = 0; g <= rules->n_groups; g++)
		write_group(f, rules, g, what);
	(void)fprintf(f, "\nend\n");
	if (fclose(f) != 0)
		abort();
	return text;
}
