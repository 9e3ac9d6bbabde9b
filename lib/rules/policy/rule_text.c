/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include "lib/base/mem.h"

/* 9999-12-31T23:59:59.999Z */
#define MAX_TIME_MS 253402300799999ull

void rule_print_time(uint64_t ms, char *buf)
{
	time_t t = (time_t)(MIN(ms, MAX_TIME_MS) / 1000);
	struct tm tm;
	size_t n;

	(void)gmtime_r(&t, &tm);
	n = strftime(buf, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	if (ms % 1000)
		(void)snprintf(buf + n, 32 - n, ".%03uZ", (unsigned)(ms % 1000));
	else
		(void)snprintf(buf + n, 32 - n, "Z");
}

/* A number at each `d` of the shape, every other byte as it is. */
static bool read_shape(struct slice text, const char *shape, int *ret)
{
	size_t field = 0;

	if (text.n != strlen(shape))
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (shape[i] != 'd') {
			field += i > 0 && shape[i - 1] == 'd';
			if (text.p[i] != (uint8_t)shape[i])
				return false;
		} else if (text.p[i] < '0' || text.p[i] > '9') {
			return false;
		} else {
			ret[field] = ret[field] * 10 + (text.p[i] - '0');
		}
	}
	return true;
}

int rule_parse_time(struct slice text, uint64_t *ret_ms)
{
	int v[8] = {0};
	char back[32];
	struct tm tm = {0};
	uint64_t ms;

	if (!read_shape(text, "dddd-dd-ddTdd:dd:ddZ", v)) {
		memset(v, 0, sizeof(v));
		if (!read_shape(text, "dddd-dd-ddTdd:dd:dd.dddZ", v))
			return -EINVAL;
	}
	if (v[0] < 1970)
		return -EINVAL;
	tm = (struct tm){.tm_year = v[0] - 1900,
		.tm_mon = v[1] - 1,
		.tm_mday = v[2],
		.tm_hour = v[3],
		.tm_min = v[4],
		.tm_sec = v[5]};
	ms = (uint64_t)timegm(&tm) * 1000 + (uint64_t)v[6];
	/* February 30th becomes another day, which then reads differently. */
	rule_print_time(ms, back);
	if (ms == 0 || strncmp(back, (const char *)text.p, 19) != 0)
		return -EINVAL;
	*ret_ms = ms;
	return 0;
}

char *rule_print_resources(const struct rule *rule)
{
	char buf[NETRULE_MAX_TEXT];
	char *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < rule->n_net; i++) {
		size_t k;

		netrule_print(&rule->net[i], buf);
		k = strlen(buf);
		text = xrealloc(text, n + k + 2);
		if (i > 0)
			text[n++] = ',';
		memcpy(text + n, buf, k + 1);
		n += k;
	}
	return text ? text : xstrdup("");
}

char *rule_print_what(const struct rule *rule)
{
	AUTO_FREE char *resources = rule_print_resources(rule),
		       *terms = effect_terms_print(&rule->terms, rule_request_kind(rule->kind));

	return xasprintf("%s%s", resources, terms);
}

/* Replaces *line by a longer one, unless there is nothing to add. */
static void add_text(char **line, const char *before, const char *s)
{
	AUTO_FREE char *old = *line;

	*line = s ? xasprintf("%s%s%s", old ? old : "", before, s) : TAKE(old);
}

static void add_time(char **line, const char *before, uint64_t ms)
{
	char buf[32];

	if (!ms)
		return;
	rule_print_time(ms, buf);
	add_text(line, before, buf);
}

char *rule_print(const struct rule *rule, enum rule_print what)
{
	AUTO_FREE char *body = rule_print_what(rule);
	char *line = NULL;

	add_text(&line, "", rule_effect_name(rule->effect));
	add_text(&line, " ", rule_kind_name(rule->kind));
	add_text(&line, " ", body);
	add_text(&line, " for sandbox ", rule->sandbox);
	add_time(&line, " until ", rule->until_ms);
	if (what == RULE_PRINT_ALL) {
		add_text(&line, " id ", rule->id);
		add_text(&line, " from ", rule->origin);
		add_time(&line, " created ", rule->created_ms);
	}
	add_text(&line, "  # ", rule->comment);
	return line;
}
