/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/policy_api.h"
#include "lib/rules/policy/rule.h"
#include "policy_verbs.h"

#define NO_RULE "no applicable policies for op("

const struct opt_def policy_check_opts[] = {
	{0, "sandbox", "NAME", "include the rules of this sandbox"},
	{0, "json", NULL, "print JSON"},
	{0, "header", "LINE", "http: a header of the request, NAME: VALUE", .many = true},
	{0},
};

/* "host:port", with brackets around IPv6; on the heap. */
static char *target_of(const json_t *answer)
{
	const char *host = api_str(answer, "host");
	bool v6 = strchr(host, ':') != NULL;

	return xasprintf(
		"%s%s%s:%lld", v6 ? "[" : "", host, v6 ? "]" : "", api_int(answer, "port"));
}

/* A command that would allow it; on the heap. */
static char *remedy_check(const json_t *answer, const char *target)
{
	const char *why = api_str(answer, "why"), *sandbox = api_str(answer, "sandbox");
	const json_t *rule = json_object_get(answer, "rule");

	if (json_is_true(json_object_get(answer, "managed")))
		return xstrdup("sbx policy ls --wide");
	if (strcmp(why, "no-policy") == 0)
		return xstrdup("sbx policy set-default balanced");
	if (strcmp(why, "fault") == 0)
		return xstrdup("sbx policy reset");
	if (strcmp(why, "rule") == 0 && strcmp(api_str(rule, "origin"), "preset:deny-all") == 0)
		return xasprintf(
			"sbx policy set-default deny-all && sbx policy allow network %s%s%s",
			target, sandbox[0] ? " --sandbox " : "", sandbox);
	if (strcmp(why, "rule") == 0)
		return xasprintf("sbx policy rm network --id %s", api_str(rule, "id"));
	/* The keys of a cloud account: not suggested, but the command exists. */
	if (strstr(api_str(answer, "explanation"), "cloud metadata"))
		return xstrdup("sbx help policy allow");
	return xasprintf("sbx policy allow network %s%s%s", target, sandbox[0] ? " --sandbox " : "",
		sandbox);
}

static void print_json(const json_t *answer, const char *target, const char *command)
{
	const char *sandbox = api_str(answer, "sandbox"), *why = api_str(answer, "why");
	const json_t *rule = json_object_get(answer, "rule");
	bool allowed = json_is_true(json_object_get(answer, "allowed"));
	AUTO_FREE char *context = sandbox[0] ? xasprintf("sandbox:%s", sandbox) : xstrdup("global");
	AUTO_JSON json_t *o = json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:s}", "type",
		"network", "action", "net:connect:tcp", "allowed", allowed, "context", context,
		"target", target, "resource_type", "net:domain", "resource_value", target, "why",
		why, "reason", api_str(answer, "explanation"));

	if (!o)
		return;
	(void)json_object_set_new(o, "deny_kind",
		allowed ? json_null()
			: json_string(strcmp(why, "rule") == 0 ? "explicit" : "implicit"));
	(void)json_object_set_new(o, "remedy", allowed ? json_null() : json_string(command));
	(void)json_object_set_new(
		o, "rule", json_is_object(rule) ? json_string(api_str(rule, "id")) : json_null());
	(void)json_object_set_new(o, "origin",
		json_is_object(rule) ? json_string(api_str(rule, "origin")) : json_null());
	(void)json_object_set_new(o, "file", json_string(api_str(answer, "file")));
	(void)json_object_set_new(
		o, "managed", json_boolean(json_is_true(json_object_get(answer, "managed"))));
	api_print(o);
}

/* Without the operation that published tools print, which the JSON has; on the heap. */
static char *plain_of(const char *explanation)
{
	const char *op = strstr(explanation, ": " NO_RULE);

	if (str_starts(explanation, NO_RULE))
		return xstrdup("no rule allows it");
	if (!op)
		op = strstr(explanation, ": op(");
	return op ? xasprintf("%.*s", (int)(op - explanation), explanation) : xstrdup(explanation);
}

static void print_text(const json_t *answer, const char *target)
{
	const json_t *rule = json_object_get(answer, "rule");
	bool allowed = json_is_true(json_object_get(answer, "allowed"));

	printf("%s: %s\n", allowed ? "Allowed" : "Denied", target);
	if (json_is_object(rule)) {
		printf("  rule:   %s  ", api_str(rule, "id"));
		ui_put(api_str(rule, "text"));
		printf("\n  origin: ");
		ui_put(api_str(rule, "origin"));
		(void)putchar('\n');
	} else {
		AUTO_FREE char *detail = plain_of(api_str(answer, "explanation"));

		printf("  detail: ");
		ui_put(detail);
		(void)putchar('\n');
	}
	if (json_is_true(json_object_get(answer, "managed")))
		printf("  file:   %s, the managed policy: only root can change it\n",
			api_str(answer, "file"));
	else
		printf("  file:   %s\n", api_str(answer, "file"));
	(void)fflush(stdout);
}

static int ask_check(const struct opts *o, json_t **ret, struct problem *p)
{
	const char *sandbox = opts_value(o, "sandbox");
	AUTO_FREE char *target = api_quote(o->args.v[1]),
		       *scope = sandbox ? api_quote(sandbox) : xstrdup(""),
		       *path = xasprintf("/v1/policy/check?target=%s%s%s", target,
			       sandbox ? "&sandbox=" : "", scope);

	return api_call("GET", path, NULL, POLICY_TIMEOUT_MS, ret, p);
}

/* A request of git or to an API is checked as the HTTP request that it is. */
static int refuse_check(const char *word)
{
	enum rule_kind kind = RULE_NETWORK;
	bool is_request =
		rule_kind_find(slice_from_str(word), &kind, NULL) == 0 && kind != RULE_NETWORK;

	if (is_request) {
		ui_error("usage: sbx policy check http 'METHOD URL'");
		ui_hint("sbx policy check http 'GET https://example.com/'");
		return EXIT_USAGE;
	}
	ui_error("usage: sbx policy check network TARGET");
	ui_hint("sbx policy check network %s", strcmp(word, "network") != 0 ? word : "example.com");
	return EXIT_USAGE;
}

int policy_check_run(struct opts *o)
{
	AUTO_FREE char *target = NULL, *command = NULL;
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	bool allowed;
	int r;

	if (strcmp(o->args.v[0], "http") == 0 && o->args.n == 2)
		return policy_check_http(o);
	if (strcmp(o->args.v[0], "network") != 0 || o->args.n < 2)
		return refuse_check(o->args.v[0]);
	r = ask_check(o, &answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	allowed = json_is_true(json_object_get(answer, "allowed"));
	target = target_of(answer);
	command = allowed ? xstrdup("") : remedy_check(answer, target);
	if (opts_has(o, "json"))
		print_json(answer, target, command);
	else
		print_text(answer, target);
	if (!allowed && !opts_has(o, "json"))
		ui_hint("%s", command);
	return allowed ? EXIT_OK : EXIT_FAILED;
}
