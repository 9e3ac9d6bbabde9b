/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/secret/service/registry.h"
#include "registry_file.h"
#include "secret_api.h"
#include "secret_verbs.h"
#include "secret_verify.h"
#include "src/sbx/verb/verb.h"

#define SET_REFRESH "55m"
#define CUSTOM_REFRESH "on-demand"
#define RANDOM_BYTES 8

#define COMMON_OPTS                                                                             \
	{'g', "global", NULL, "for all sandboxes (default)"},                                   \
		{0, "sandbox", "NAME", "for this sandbox only"},                                \
		{'f', "force", NULL, "replace an existing credential without prompting"},       \
		{0, "ref", "REF", "query a password manager: docker:, op://, aws: or pass:"},   \
		{0, "command", "COMMAND", "use the first line of a program's output"},          \
		{0, "refresh", "TIME", "time to keep such a value: 30m, 8h, on-demand"},        \
	{                                                                                       \
		't', "token", "VALUE", "refused: others can read command lines", .hidden = true \
	}

const struct opt_def secret_set_opts[] = {
	{0, "registry", "HOST[:PORT]", "the credential of a private container registry"},
	{0, "user", "USER", "user of the registry; the value is then the password"},
	{0, "token-service", "HOST/PATH", "token service of the registry, if on another host"},
	{0, "proxy", NULL, "the password of the user of network.proxy"},
	{0, "verify", "SANDBOX", "send a request from SANDBOX to verify the credential"},
	COMMON_OPTS,
	{0},
};
const struct opt_def secret_custom_opts[] = {
	{0, "host", "HOST[:PORT]", "host of the credential (default port: 443)", .many = true},
	{0, "header", "NAME", "header name (default: authorization)"},
	{0, "format", "TEXT", "header value; %s is the credential"},
	{0, "env", "VAR", "variable in the sandbox for the placeholder", .many = true},
	{0, "placeholder", "TEXT", "placeholder that sandboxes see; {rand} is a random word"},
	COMMON_OPTS,
	{0, "value", "VALUE", "refused: others can read command lines", .hidden = true},
	{0},
};

static int refuse_value(const char *given, const char *verb, struct problem *p)
{
	if (!given)
		return 0;
	(void)err_set(&p->err, -EINVAL,
		"other programs can read a value on the command line, so it was not used. Type it at the prompt, or redirect stdin from a file");
	return problem_usage(p, -EINVAL, verb);
}

/* Everything except the value, then the value, then all of it to sbxd. `service`: the text of a
 * service file to write before, or NULL. */
static int set_all(const char *name, const char *shape, const char *sandbox, bool force,
	const char *service, json_t *body, struct problem *p)
{
	AUTO_SECRET_VALUE struct secret_value v = {0};
	AUTO_JSON json_t *answer = NULL;
	bool by_value = !json_object_get(body, "ref");
	int r = secret_check_sandbox(sandbox, p);

	if (r == 0)
		r = secret_may_replace(name, sandbox, force, p);
	if (r == 0 && sandbox)
		(void)json_object_set_new(body, "sandbox", json_string(sandbox));
	if (r == 0 && by_value)
		r = secret_value_init(&v, p);
	if (r == 0 && by_value)
		r = secret_get_value(name, shape, &v, p);
	if (r == 0 && service)
		r = registry_file_save(name, service, p);
	if (r == 0)
		r = secret_put(name, body, by_value ? &v : NULL, &answer, p);
	if (r == 0)
		secret_say_set(answer, sandbox);
	return r;
}

/* What to set: a service, or a registry with the text of its service file. */
struct target {
	char *name, *shape, *text;
};

static void target_done(struct target *t)
{
	free(t->name);
	free(t->shape);
	free(t->text);
}

static int find_target(const char *name, struct target *ret, struct problem *p)
{
	AUTO_JSON json_t *services = NULL;
	const json_t *service = NULL;
	int r = secret_services(&services, p);

	if (r == 0)
		r = secret_find_service(services, name, &service, p);
	if (r < 0)
		return r;
	ret->name = xstrdup(name);
	ret->shape = xstrdup(api_str(service, "shape"));
	return 0;
}

static int make_registry(const struct opts *o, struct target *ret, struct problem *p)
{
	const struct registry reg = {.host = opts_value(o, "registry"),
		.user = opts_value(o, "user"),
		.token = opts_value(o, "token-service")};
	char name[REGISTRY_MAX_NAME];
	int r = registry_name(reg.host, name, &p->err);

	if (r == 0)
		r = registry_text(&reg, &ret->text, &p->err);
	if (r < 0)
		return problem_usage(p, -EINVAL, "secret set");
	ret->name = xstrdup(name);
	ret->shape = xstrdup(reg.user ? "token" : "user:password");
	return registry_file_check(name, ret->text, p);
}

static int take_target(const struct opts *o, struct target *ret, struct problem *p)
{
	bool is_registry = opts_has(o, "registry");
	const char *why = NULL;

	if (opts_has(o, "proxy") && (o->args.n || is_registry || opts_has(o, "verify")))
		why = "--proxy is used without SERVICE, --registry and --verify";
	else if (opts_has(o, "proxy"))
		return 0;
	else if (o->args.n + is_registry != 1)
		why = is_registry ? "SERVICE and --registry are mutually exclusive"
				  : "missing SERVICE or --registry HOST";
	else if (!is_registry && (opts_has(o, "user") || opts_has(o, "token-service")))
		why = "--user and --token-service require --registry";
	if (!why)
		return is_registry ? make_registry(o, ret, p) : find_target(o->args.v[0], ret, p);
	(void)err_set(&p->err, -EINVAL, "%s", why);
	return problem_usage(p, -EINVAL, "secret set");
}

static int take_proxy(const char *sandbox, struct target *ret, json_t **body, struct problem *p)
{
	const char *name;
	int r = secret_make_proxy(sandbox, &name, body, p);

	if (r < 0)
		return r;
	ret->name = xstrdup(name);
	ret->shape = xstrdup("token");
	return 0;
}

int secret_set_run(struct opts *o)
{
	CLEANUP(target_done) struct target t = {0};
	AUTO_JSON json_t *ref = NULL, *body = NULL;
	const char *sandbox = NULL;
	struct problem p = {0};
	int r = refuse_value(opts_value(o, "token"), "secret set", &p);

	if (r == 0)
		r = secret_scope(o, "secret set", &sandbox, &p);
	if (r == 0)
		r = secret_take_ref(o, "secret set", SET_REFRESH, &ref, &p);
	if (r == 0)
		r = take_target(o, &t, &p);
	if (r == 0 && opts_has(o, "proxy"))
		r = take_proxy(sandbox, &t, &body, &p);
	else if (r == 0)
		body = json_pack("{s:s}", "kind", "service");
	if (r == 0) {
		if (ref)
			(void)json_object_set(body, "ref", ref);
		r = set_all(t.name, t.shape, sandbox, opts_has(o, "force"), t.text, body, &p);
	}
	if (r == 0 && opts_has(o, "verify"))
		r = secret_verify(t.name, opts_value(o, "verify"), &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

/* The value that sandboxes see: recognizable, so that it is not mistaken for a credential. */
static int make_placeholder(const char *wish, char **ret, struct problem *p)
{
	char random[2 * RANDOM_BYTES + 1];
	const char *mark = wish ? strstr(wish, "{rand}") : NULL;
	AUTO_FREE char *text = NULL;

	str_random_hex(random, RANDOM_BYTES);
	if (!wish)
		text = xasprintf("sbx-cs-proxy-managed-%s", random);
	else if (mark)
		text = xasprintf("%.*s%s%s%s", (int)(mark - wish), wish,
			secret_value_is_placeholder(wish) ? "" : "proxymanaged", random, mark + 6);
	else
		text = xstrdup(wish);
	if (!secret_value_is_placeholder(text)) {
		(void)err_set(&p->err, -EINVAL,
			"invalid --placeholder '%s': it must contain proxy-managed, proxymanaged or {rand}",
			text);
		return problem_usage(p, -EINVAL, "secret set-custom");
	}
	*ret = TAKE(text);
	return 0;
}

static json_t *to_list(const struct opt_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++)
		(void)json_array_append_new(list, json_string(l->v[i]));
	return list;
}

static int make_custom(const struct opts *o, json_t **ret, struct problem *p)
{
	const char *header = opts_value(o, "header"), *format = opts_value(o, "format");
	AUTO_FREE char *placeholder = NULL;
	int r;

	if (opts_list(o, "host")->n == 0) {
		(void)err_set(&p->err, -EINVAL, "missing --host HOST");
		return problem_usage(p, -EINVAL, "secret set-custom");
	}
	if (opts_value(o, "placeholder") && opts_list(o, "env")->n == 0) {
		(void)err_set(&p->err, -EINVAL, "--placeholder requires --env");
		return problem_usage(p, -EINVAL, "secret set-custom");
	}
	r = make_placeholder(opts_value(o, "placeholder"), &placeholder, p);
	if (r < 0)
		return r;
	*ret = json_pack("{s:s, s:o, s:s, s:s, s:o}", "kind", "custom", "hosts",
		to_list(opts_list(o, "host")), "header", header ? header : "authorization",
		"format",
		format	 ? format
		: header ? "%s"
			 : "Bearer %s",
		"env", to_list(opts_list(o, "env")));
	if (*ret && opts_list(o, "env")->n)
		(void)json_object_set_new(*ret, "sentinel", json_string(placeholder));
	return *ret ? 0 : err_set(&p->err, -EINVAL, "an argument is not UTF-8");
}

int secret_custom_run(struct opts *o)
{
	AUTO_JSON json_t *ref = NULL, *body = NULL;
	const char *sandbox = NULL, *value = opts_value(o, "value") ? opts_value(o, "value")
								    : opts_value(o, "token");
	struct problem p = {0};
	int r = refuse_value(value, "secret set-custom", &p);

	if (r == 0)
		r = secret_scope(o, "secret set-custom", &sandbox, &p);
	if (r == 0)
		r = secret_take_ref(o, "secret set-custom", CUSTOM_REFRESH, &ref, &p);
	if (r == 0)
		r = make_custom(o, &body, &p);
	if (r == 0 && ref)
		(void)json_object_set(body, "ref", ref);
	if (r == 0)
		r = set_all(o->args.v[0], "token", sandbox, opts_has(o, "force"), NULL, body, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}
