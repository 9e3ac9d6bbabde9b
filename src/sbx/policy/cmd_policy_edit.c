/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/policy_api.h"
#include "lib/rules/policy/rule.h"
#include "policy_verbs.h"
#include "src/sbx/verb/verb.h"

const struct opt_def policy_add_opts[] = {
	{0, "sandbox", "NAME", "add the rule for this sandbox only"},
	{0, "for", "TIME", "remove the rule after TIME, for example 30m, 8h or 7d"},
	{0, "comment", "TEXT", "store a comment with the rule"},
	{0, "json", NULL, "print JSON"},
	{0, "method", "LIST", "http: only these methods", .heading = "Requests"},
	{0, "query", "NAME=GLOB", "http: only with this field of the query", .many = true},
	{0, "header", "NAME=GLOB", "http: only with this header", .many = true},
	{0, "do", "LIST", "git: fetch, push, create, delete, force, tag; api: verbs; or any"},
	{0, "ref", "LIST", "git: only these refs"},
	{0, "path", "LIST", "git: only pushes that change these files"},
	{0, "on", "LIST", "api: only these objects"},
	{0, "risk", "LIST", "api: only these risks, for example read"},
	{0},
};
const struct opt_def policy_rm_opts[] = {
	{0, "id", "ID", "remove the rule with this id"},
	{0, "resource", "LIST", "remove these resources from all rules that contain them",
		.many = true},
	{0, "sandbox", "NAME", "remove from the rules of this sandbox (default: rules for all)"},
	{0, "decision", "WORD", "remove only from allow or only from deny rules"},
	{0, "json", NULL, "print JSON"},
	{0},
};

#define ID_LEN 12 /* of a rule */

/* The first argument is the kind of rule. */
static int check_kind(
	const struct opts *o, const char *verb, enum rule_kind *ret, struct problem *p)
{
	static const char *const kinds[] = {"network", "http", "git", "api", NULL};
	const char *word = o->args.v[0], *near = opt_nearest(word, kinds);
	int r = rule_kind_find(slice_from_str(word), ret, &p->err);

	if (r == 0)
		return 0;
	if (r == -ENOTSUP)
		return problem_usage(p, r, "policy");
	if (near)
		(void)err_set(&p->err, -EINVAL, "unknown kind of rule '%s': did you mean %s?", word,
			near);
	else
		(void)err_set(&p->err, -EINVAL, "missing 'network' before '%s'", word);
	if (strcmp(verb, "rm") == 0 && hex_is(word, ID_LEN)) {
		(void)problem_hint(p, -EINVAL, "sbx policy rm network --id %s", word);
		return problem_usage(p, -EINVAL, "policy");
	}
	if (near || policy_check_resources(word, &(struct problem){0}) == 0) {
		const char *host = !near ? word : o->args.n > 1 ? o->args.v[1] : "";
		AUTO_FREE char *quoted = host[0] ? policy_shell_word(host) : xstrdup("");

		(void)problem_hint(p, -EINVAL, "sbx policy %s network %s", verb, quoted);
	}
	return problem_usage(p, -EINVAL, "policy");
}

/* Several arguments and comma-separated lists form one list. */
static char *join_edit(const struct opt_list *l, size_t from)
{
	char *list = NULL;

	for (size_t i = from; i < l->n; i++) {
		char *longer = xasprintf("%s%s%s", list ? list : "", list ? "," : "", l->v[i]);

		free(list);
		list = longer;
	}
	return list ? list : xstrdup("");
}

static const char *const term_names[] = {
	"method", "do", "ref", "path", "on", "risk", "query", "header"};

/* The options about requests, as they are in the file; on the heap. */
static char *join_options(const struct opts *o)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < ARRAY_LEN(term_names); i++) {
		const struct opt_list *l = opts_list(o, term_names[i]);

		for (size_t k = 0; k < l->n; k++) {
			char *longer = xasprintf("%s %s %s", text, term_names[i], l->v[k]);

			free(text);
			text = longer;
		}
	}
	return text;
}

/* With a blank, a value would become further words of the rule. */
static int check_blanks(const struct opts *o, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(term_names); i++) {
		const struct opt_list *l = opts_list(o, term_names[i]);

		for (size_t k = 0; k < l->n; k++)
			if (!l->v[k][0] || strpbrk(l->v[k], " \t"))
				return err_set(err, -EINVAL,
					"invalid --%s '%s': expected text without blanks",
					term_names[i], l->v[k]);
	}
	return 0;
}

static int check_rule(
	const struct opts *o, const struct policy_wish *w, enum rule_kind kind, struct problem *p)
{
	AUTO_RULE struct rule rule = {0};
	enum rule_effect effect = RULE_DENY;
	int r = check_blanks(o, &p->err);

	while (strcmp(rule_effect_name(effect), w->effect) != 0)
		effect++;
	return r < 0 ? r
		     : rule_make_terms(effect, kind, slice_from_str(w->resources),
			       slice_from_str(w->options), &rule, &p->err);
}

static int read_wish(const struct opts *o, struct policy_wish *w, struct problem *p)
{
	const char *span = opts_value(o, "for");
	enum rule_kind kind = RULE_NETWORK;
	uint64_t seconds = 0;
	int r = check_kind(o, w->effect, &kind, p);

	if (r < 0)
		return r;
	if (o->args.n < 2) {
		(void)err_set(&p->err, -EINVAL, "missing RESOURCES");
		(void)problem_hint(p, -EINVAL, "sbx policy %s %s", w->effect,
			kind == RULE_NETWORK ? "network example.com"
			: kind == RULE_HTTP  ? "http 'example.com/v1/**' --method GET"
			: kind == RULE_GIT   ? "git 'github.com/acme/*' --do fetch"
					     : "api github --do any --risk read");
		return problem_usage(p, -EINVAL, "policy");
	}
	if (span && (str_to_seconds(span, &seconds) < 0 || seconds == 0 ||
			    seconds > UINT64_C(3153600000))) {
		(void)err_set(&p->err, -EINVAL,
			"invalid duration '%s': use a form such as 90s, 30m, 8h or 7d", span);
		return problem_usage(p, -EINVAL, "policy");
	}
	r = check_rule(o, w, kind, p);
	if (r < 0)
		return problem_usage(p, r, "policy");
	w->kind = rule_kind_name(kind);
	w->for_ms = seconds * 1000;
	w->sandbox = opts_value(o, "sandbox");
	w->comment = opts_value(o, "comment");
	return 0;
}

/* The answer is kept: other parts of it are used. */
static void print_json(const json_t *answer)
{
	AUTO_JSON json_t *copy = json_deep_copy(answer);

	policy_answer_form(copy);
	api_print(copy);
}

static void say_added(const json_t *answer)
{
	const json_t *rule = json_object_get(answer, "rule");
	const char *sandbox = api_str(rule, "sandbox");

	if (json_is_true(json_object_get(answer, "existed")))
		printf("Rule already exists");
	else
		printf("Rule added to policy local");
	printf(" (scope: %s%s): %s\n", sandbox[0] ? "sandbox:" : "all", sandbox,
		api_str(rule, "id"));
	(void)fflush(stdout);
}

/* A rule about requests does not open the connection to its host. */
static void say_unreachable(const json_t *answer)
{
	const json_t *rule = json_object_get(answer, "rule"), *one;
	const char *kind = api_str(rule, "kind"), *sandbox = api_str(rule, "sandbox");
	size_t i;

	json_array_foreach (json_object_get(rule, "resources"), i, one) {
		const char *text = json_string_value(one);
		AUTO_FREE char *host = xstrndup(text, strcspn(text, "/"));
		AUTO_FREE char *path = xasprintf("/v1/policy/check?target=%s%s%s", host,
			sandbox[0] ? "&sandbox=" : "", sandbox);
		AUTO_JSON json_t *check = NULL;
		struct problem p = {0};

		if (strcmp(kind, "network") == 0 || strcmp(kind, "api") == 0 ||
			strpbrk(host, "*?[") ||
			api_call("GET", path, NULL, POLICY_TIMEOUT_MS, &check, &p) < 0 ||
			json_is_true(json_object_get(check, "allowed")))
			continue;
		ui_note("No network rule allows connections to %s:", host);
		ui_hint("sbx policy allow network %s%s%s", host, sandbox[0] ? " --sandbox " : "",
			sandbox);
	}
}

static int add_edit(struct opts *o, const char *effect)
{
	AUTO_FREE char *resources = join_edit(&o->args, 1), *options = join_options(o);
	struct policy_wish w = {.effect = effect, .resources = resources, .options = options};
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	int r = read_wish(o, &w, &p);

	if (r == 0)
		r = policy_add(&w, &answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		print_json(answer);
	else
		say_added(answer);
	policy_say_conflicts(answer);
	policy_say_governed(answer);
	if (strcmp(effect, "deny") != 0)
		say_unreachable(answer);
	policy_say_not_taken(answer);
	return EXIT_OK;
}

int policy_allow_run(struct opts *o)
{
	return add_edit(o, "allow");
}

int policy_ask_run(struct opts *o)
{
	return add_edit(o, "ask");
}

int policy_deny_run(struct opts *o)
{
	return add_edit(o, "deny");
}

static int check_rm(const struct opts *o, struct problem *p)
{
	const char *decision = opts_value(o, "decision");
	enum rule_kind kind = RULE_NETWORK;
	int r = check_kind(o, "rm", &kind, p);

	if (r < 0)
		return r;
	if (opts_has(o, "id") == opts_has(o, "resource"))
		r = err_set(&p->err, -EINVAL, "expected one of --id ID and --resource LIST");
	else if (opts_has(o, "resource") && kind != RULE_NETWORK)
		r = err_set(&p->err, -EINVAL, "rules of kind %s are removed by their --id",
			rule_kind_name(kind));
	else if (opts_has(o, "id") && (opts_has(o, "sandbox") || decision))
		r = err_set(
			&p->err, -EINVAL, "--id cannot be combined with --sandbox or --decision");
	else if (decision && strcmp(decision, "allow") != 0 && strcmp(decision, "deny") != 0)
		r = err_set(&p->err, -EINVAL, "invalid --decision '%s': expected allow or deny",
			decision);
	return r < 0 ? problem_usage(p, r, "policy rm") : 0;
}

/* The path of the call, on the heap. */
static char *rm_path(const struct opts *o, const char *list)
{
	const char *id = opts_value(o, "id"), *sandbox = opts_value(o, "sandbox"),
		   *decision = opts_value(o, "decision");
	AUTO_FREE char *quoted = api_quote(id ? id : list),
		       *scope = sandbox ? api_quote(sandbox) : xstrdup("");

	if (id)
		return xasprintf("/v1/policy/rules/%s", quoted);
	return xasprintf("/v1/policy/rules?resource=%s%s%s%s%s", quoted, decision ? "&effect=" : "",
		decision ? decision : "", sandbox ? "&sandbox=" : "", scope);
}

static void say_removed(const json_t *answer, const char *list)
{
	const json_t *removed = json_object_get(answer, "removed"), *rule;
	long long n = api_int(answer, "n_removed");
	size_t i;

	if (list[0])
		printf("Removed %s from %lld rule%s:\n", list, n, n == 1 ? "" : "s");
	json_array_foreach (removed, i, rule) {
		printf(list[0] ? "  %s  " : "Rule removed: %s  ", api_str(rule, "id"));
		ui_put(api_str(rule, "text"));
		(void)putchar('\n');
	}
	if (n > (long long)json_array_size(removed))
		printf("  ... and %lld more\n", n - (long long)json_array_size(removed));
	(void)fflush(stdout);
}

int policy_rm_run(struct opts *o)
{
	AUTO_FREE char *list = join_edit(opts_list(o, "resource"), 0), *path = NULL;
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	int r = check_rm(o, &p);

	if (r == 0 && list[0]) {
		r = policy_check_resources(list, &p);
		r = r < 0 ? problem_usage(&p, r, "policy rm") : 0;
	}
	if (r < 0)
		return ui_problem(&p, r);
	path = rm_path(o, list);
	r = api_call("DELETE", path, NULL, POLICY_TIMEOUT_MS, &answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		print_json(answer);
	else
		say_removed(answer, list);
	policy_say_governed(answer);
	policy_say_not_taken(answer);
	return EXIT_OK;
}
