/* SPDX-License-Identifier: Apache-2.0 */
#include "naive_request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"

enum is { NO, MAYBE, YES };

static int same(char a, char b, bool fold)
{
	return fold ? tolower(a) == tolower(b) : a == b;
}

/* One segment: up to a slash or the end. */
static bool is_over(const char *s)
{
	return *s == '\0' || *s == '/';
}

/* At a segment of both. */
static bool match_path(const char *p, const char *s, bool fold);

static bool match_in(const char *p, const char *s, bool fold)
{
	if (*p == '*')
		return match_in(p + 1, s, fold) || (!is_over(s) && match_in(p, s + 1, fold));
	if (is_over(p) || is_over(s)) {
		if (*p != *s)
			return false;
		return *p == '\0' || match_path(p + 1, s + 1, fold);
	}
	return same(*p, *s, fold) && match_in(p + 1, s + 1, fold);
}

static bool match_path(const char *p, const char *s, bool fold)
{
	const char *slash;

	if (strcmp(p, "**") == 0)
		return true;
	if (strncmp(p, "**/", 3) != 0)
		return match_in(p, s, fold);
	if (match_path(p + 3, s, fold))
		return true;
	slash = strchr(s, '/');
	return slash && match_path(p, slash + 1, fold);
}

static enum is both(bool exact, bool folded)
{
	return exact ? YES : folded ? MAYBE : NO;
}

static void text_of(struct slice s, char *buf)
{
	memcpy(buf, s.p ? (const char *)s.p : "", s.n);
	buf[s.n] = '\0';
}

static enum is path_is(const char *p, struct slice fact)
{
	char s[600];

	text_of(fact, s);
	return both(match_path(p, s, false), match_path(p, s, true));
}

/* `*` is anything here, also a slash. */
static bool match_word(const char *p, const char *s, bool fold)
{
	if (*p == '*')
		return match_word(p + 1, s, fold) || (*s && match_word(p, s + 1, fold));
	return *p ? same(*p, *s, fold) && *s && match_word(p + 1, s + 1, fold) : !*s;
}

static enum is word_is(const char *p, struct slice fact)
{
	char s[600];

	text_of(fact, s);
	return both(match_word(p, s, false), match_word(p, s, true));
}

/* The queries of random_requests.c: no escapes but in names. */
static enum is query_is(const char *pair, const struct effect *e)
{
	char query[200], *save = NULL, *found = NULL;
	const char *want = strchr(pair, '=') + 1;
	size_t n = (size_t)(want - pair) - 1, times = 0;

	text_of(e->query, query);
	if (!e->has_query)
		return NO;
	if (strchr(query, ';'))
		return MAYBE;
	for (char *f = strtok_r(query, "&", &save); f; f = strtok_r(NULL, "&", &save)) {
		size_t k = strcspn(f, "=");

		if (memchr(f, '%', k))
			return MAYBE;
		if (k == n && strncasecmp(f, pair, n) == 0 && strncmp(f, pair, n) != 0)
			return MAYBE;
		if (k == n && strncmp(f, pair, n) == 0) {
			times++;
			found = f + k + (f[k] == '=');
		}
	}
	if (times > 1)
		return MAYBE;
	return times ? word_is(want, slice_from_str(found)) : NO;
}

static enum is header_is(const char *pair, const struct effect *e)
{
	const char *want = strchr(pair, '=') + 1;
	struct slice name = slice_of(pair, (size_t)(want - pair) - 1);
	enum is m = e->has_headers ? NO : MAYBE;
	size_t times = 0;

	for (size_t i = 0; i < e->n_headers; i++)
		if (slice_eq(e->header[i].name, name) && ++times == 1)
			m = word_is(want, e->header[i].value);
	return times > 1 ? MAYBE : m;
}

static enum is do_is(const char *word, const struct effect *e)
{
	if (strcmp(word, "unknown") == 0)
		return e->is_unknown ? YES : NO;
	if (e->is_unknown)
		return MAYBE;
	return strcmp(word, "any") == 0 ? YES : word_is(word, e->verb);
}

static enum is one_is(const char *option, const char *word, const struct effect *e)
{
	if (strcmp(option, "do") == 0 || strcmp(option, "method") == 0)
		return do_is(word, e);
	if (strcmp(option, "query") == 0)
		return query_is(word, e);
	if (strcmp(option, "header") == 0)
		return header_is(word, e);
	if (strcmp(option, "risk") == 0)
		return e->risk.n ? word_is(word, e->risk) : MAYBE;
	if (strcmp(option, "path") == 0)
		return e->path.n ? path_is(word, e->path) : MAYBE;
	return e->object.n && !e->is_odd ? path_is(word, e->object) : MAYBE;
}

static enum is list_is(const char *option, char *value, const struct effect *e)
{
	enum is best = NO;
	char *save = NULL;

	if (strcmp(option, "query") == 0 || strcmp(option, "header") == 0)
		return one_is(option, value, e);
	for (char *word = strtok_r(value, ",", &save); word; word = strtok_r(NULL, ",", &save))
		best = MAX(best, one_is(option, word, e));
	return best;
}

static enum is terms_are(char *text, const struct effect *e)
{
	enum is worst = YES, m;
	char *save = NULL;
	bool unknown = false;

	for (char *option = strtok_r(text, " ", &save); option;
		option = strtok_r(NULL, " ", &save)) {
		char *value = strtok_r(NULL, " ", &save);

		if (strcmp(option, "do") == 0 && strstr(value, "unknown"))
			unknown = true;
		m = list_is(option, value, e);
		worst = MIN(worst, m);
	}
	return e->is_unknown && !unknown ? MIN(worst, MAYBE) : worst;
}

/* Of a rule about hosts: the part before the path. */
static bool host_is(const char *resource, size_t n, const struct policy_op *op, bool every_port)
{
	char text[300];

	memcpy(text, resource, n);
	text[n] = '\0';
	return naive_matches_host(text, op, every_port);
}

static enum is resource_is(const char *r, enum rule_kind kind, const struct effect *e)
{
	const char *slash = strchr(r, '/');
	struct slice fact = kind == RULE_HTTP ? e->object : e->target;

	if (kind == RULE_API)
		return strcmp(r, "**") == 0 ? YES : e->target.n ? word_is(r, e->target) : MAYBE;
	if (strcmp(slash, "/**") == 0)
		return YES;
	if (fact.n == 0 || e->is_odd)
		return MAYBE;
	return path_is(kind == RULE_HTTP ? slash : slash + 1, fact);
}

static bool names_host(const char *r, const struct rule *rule, const struct policy_request *req)
{
	if (rule->kind != RULE_API)
		return host_is(r, strcspn(r, "/"), &req->op, rule->effect != RULE_ALLOW);
	for (size_t i = 0; i < req->n; i++)
		if (req->list[i].n && req->list[i].effect->kind == EFFECT_API &&
			(strcmp(r, "**") == 0 || slice_eq_str(req->list[i].effect->target, r)))
			return true;
	return false;
}

/* NULL: only whether a resource names the host. */
static enum is rule_is(
	const struct naive_rule *rule, const struct policy_request *req, const struct effect *e)
{
	char text[2000], terms[2000], *save = NULL;
	enum is best = NO, terms_are_so;

	if (e && e->kind != rule_request_kind(rule->rule->kind))
		return NO;
	(void)snprintf(text, sizeof(text), "%s", rule->resources);
	(void)snprintf(terms, sizeof(terms), "%s", text + strcspn(text, " "));
	text[strcspn(text, " ")] = '\0';
	for (char *r = strtok_r(text, ",", &save); r; r = strtok_r(NULL, ",", &save))
		if (names_host(r, rule->rule, req))
			best = MAX(best, e ? resource_is(r, rule->rule->kind, e) : YES);
	if (!e || best == NO)
		return best;
	terms_are_so = terms_are(terms, e);
	return MIN(best, terms_are_so);
}

static bool counts(const struct naive_rule *rule, const char *sandbox, uint64_t now_ms)
{
	return rule->rule->kind != RULE_NETWORK && rule_is_for(rule->rule, sandbox) &&
	       !(rule->rule->until_ms && now_ms >= rule->rule->until_ms);
}

struct naive_answer naive_request(const struct naive_rule *rules, size_t n, const char *sandbox,
	const struct policy_request *req, bool network)
{
	struct naive_answer a = {.verdict = POLICY_DENIES};
	bool asked = false, covered = false;

	for (size_t i = 0; i < n; i++)
		if (counts(&rules[i], sandbox, req->op.now_ms) &&
			rules[i].rule->effect == RULE_ALLOW && rule_is(&rules[i], req, NULL) == YES)
			a.is_governed = network;
	for (size_t d = 0; d < req->n; d++) {
		bool all = req->list[d].n > 0;

		for (size_t k = 0; k < req->list[d].n; k++) {
			bool one = false;

			for (size_t i = 0; i < n; i++) {
				enum is m =
					counts(&rules[i], sandbox, req->op.now_ms)
						? rule_is(&rules[i], req, &req->list[d].effect[k])
						: NO;

				if (m != NO && rules[i].rule->effect == RULE_DENY)
					return a;
				asked = asked || (m != NO && rules[i].rule->effect == RULE_ASK);
				one = one || (m == YES);
			}
			all = all && one;
		}
		covered = covered || all;
	}
	if (network && (covered || !a.is_governed))
		a.verdict = asked ? POLICY_ASKS : POLICY_ALLOWS;
	return a;
}

bool naive_request_names(const struct naive_rule *rule, const struct policy_request *req,
	const struct policy_outcome *out)
{
	static const enum rule_effect effects[] = {[POLICY_DENIES] = RULE_DENY,
		[POLICY_ALLOWS] = RULE_ALLOW,
		[POLICY_ASKS] = RULE_ASK};
	const struct effect *e = &req->list[out->description].effect[out->effect];

	return rule->rule->effect == effects[out->verdict] &&
	       rule_is(rule, req, e) >= (out->verdict == POLICY_ALLOWS ? YES : MAYBE) &&
	       slice_eq_str(out->by.rule.resources, rule->resources);
}
