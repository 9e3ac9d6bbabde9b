/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"

int secret_services(json_t **ret_answer, struct problem *p)
{
	return api_call("GET", "/v1/services", NULL, SECRET_TIMEOUT_MS, ret_answer, p);
}

int secret_list(json_t **ret_answer, struct problem *p)
{
	return api_call("GET", "/v1/secrets", NULL, SECRET_TIMEOUT_MS, ret_answer, p);
}

char *secret_join(const json_t *list, const char *separator)
{
	const json_t *item;
	char *text = NULL;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *s = json_string_value(item);
		char *longer =
			xasprintf("%s%s%s", text ? text : "", text ? separator : "", s ? s : "");

		free(text);
		text = longer;
	}
	return text ? text : xstrdup("-");
}

int secret_find_service(
	const json_t *answer, const char *name, const json_t **ret, struct problem *p)
{
	const char *words[SECRET_MAX_WORDS + 1] = {NULL}, *near;
	const json_t *s;
	size_t i;

	json_array_foreach (json_object_get(answer, "services"), i, s) {
		if (strcmp(api_str(s, "name"), name) == 0) {
			*ret = s;
			return 0;
		}
		if (i < SECRET_MAX_WORDS)
			words[i] = api_str(s, "name");
	}
	near = opt_nearest(name, words);
	(void)err_set(&p->err, -ENOENT, "unknown service '%s'%s%s%s", name,
		near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
	if (near)
		return problem_hint(p, -ENOENT, "sbx secret set %s", near);
	return problem_hint(p, -ENOENT, "sbx secret services");
}

static bool is_of(const json_t *secret, const char *sandbox)
{
	return strcmp(api_str(secret, "sandbox"), sandbox) == 0 ||
	       strcmp(api_str(secret, "sandbox_id"), sandbox) == 0;
}

static bool is_global(const json_t *secret)
{
	return strcmp(api_str(secret, "scope"), "global") == 0;
}

const json_t *secret_find(const json_t *answer, const char *name, const char *sandbox)
{
	const json_t *s;
	size_t i;

	json_array_foreach (json_object_get(answer, "secrets"), i, s) {
		if (strcmp(api_str(s, "name"), name) == 0 &&
			(sandbox ? !is_global(s) && is_of(s, sandbox) : is_global(s)))
			return s;
	}
	return NULL;
}

bool secret_is_bound(const json_t *answer, const json_t *secret, const char *sandbox)
{
	if (!is_global(secret))
		return is_of(secret, sandbox);
	return !secret_find(answer, api_str(secret, "name"), sandbox);
}

int secret_scope(const struct opts *o, const char *verb, const char **ret, struct problem *p)
{
	*ret = opts_value(o, "sandbox");
	if (*ret && opts_has(o, "global")) {
		(void)err_set(&p->err, -EINVAL, "-g and --sandbox are mutually exclusive");
		return problem_usage(p, -EINVAL, verb);
	}
	return 0;
}

/* Detects a typo before a value is typed. */
int secret_check_sandbox(const char *sandbox, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;

	return sandbox ? sandbox_get(sandbox, &s, p) : 0;
}

int secret_may_replace(const char *name, const char *sandbox, bool force, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	const json_t *old;
	int r = secret_list(&answer, p);

	if (r < 0)
		return r;
	old = secret_find(answer, name, sandbox);
	if (!old || force)
		return 0;
	/* A script that runs twice must not fail the second time. */
	if (!ui_can_ask()) {
		ui_note("Credential '%s' already exists (%s) and is replaced", name,
			api_str(old, "secret"));
		return 0;
	}
	if (ui_confirm("Credential '%s' already exists (%s). Replace it?", name,
		    api_str(old, "secret")))
		return 0;
	return err_set(&p->err, -ECANCELED, "credential '%s' was not changed", name);
}

static int check_shape(const char *shape, const struct secret_value *v, struct problem *p)
{
	const char *colon = strchr(v->p, ':');

	if (strcmp(shape, "token") == 0 || (colon && colon > v->p && colon[1]))
		return 0;
	(void)err_set(&p->err, -EINVAL,
		strcmp(shape, "id:secret") == 0
			? "expected ID:SECRET or ID:SECRET:SESSION: credential unchanged"
			: "expected USER:PASSWORD: credential unchanged");
	return problem_hint(p, -EINVAL, "sbx help secret set");
}

int secret_get_value(const char *name, const char *shape, struct secret_value *v, struct problem *p)
{
	AUTO_FREE char *prompt = xasprintf("Value of '%s'%s%s%s (not shown): ", name,
		strcmp(shape, "token") == 0 ? "" : ", as ",
		strcmp(shape, "token") == 0 ? "" : shape, "");
	bool ask = ui_can_ask();
	int r = ask ? secret_value_ask(v, prompt, p) : secret_value_read(v, STDIN_FILENO, p);

	if (r < 0)
		return r;
	if (!ask && secret_value_chomp(v))
		ui_warning("removed the trailing newline from the value");
	r = secret_value_check(v, p);
	if (r == 0)
		r = check_shape(shape, v, p);
	if (r == 0 && ask)
		ui_note("%zu characters", v->n);
	return r;
}

int secret_put(const char *name, json_t *body, const struct secret_value *value, json_t **ret,
	struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(name);
	AUTO_FREE char *path = xasprintf("/v1/secrets/%s", quoted);
	AUTO_CLOSE int fd = value ? secret_value_pass(value, p) : -1;

	if (value && fd < 0)
		return fd;
	return api_call_passing("PUT", path, body, fd, SECRET_TIMEOUT_MS, ret, p);
}

void secret_say_set(const json_t *answer, const char *sandbox)
{
	const json_t *denied = json_object_get(answer, "denied");
	AUTO_FREE char *hosts = secret_join(json_object_get(answer, "hosts"), ", ");
	AUTO_FREE char *envs = secret_join(json_object_get(answer, "env"), ", ");
	AUTO_FREE char *closed = secret_join(denied, ",");
	AUTO_FREE char *word = policy_shell_word(closed);

	printf("%s Credential '%s' set for %s%s\n", ui_tick(), api_str(answer, "name"),
		sandbox ? "sandbox " : "all sandboxes", sandbox ? sandbox : "");
	printf("  hosts: ");
	ui_put(hosts);
	(void)putchar('\n');
	if (strcmp(envs, "-") != 0) {
		printf("  placeholder in sandboxes: ");
		ui_put(envs);
		(void)putchar('\n');
	}
	(void)fflush(stdout);
	if (json_array_size(denied) == 0)
		return;
	if (!policy_is_there()) {
		ui_warning("no network policy is set: sandboxes cannot reach these hosts");
		ui_hint("sbx policy set-default balanced");
		return;
	}
	ui_warning("the policy does not allow %s", closed);
	if (sandbox)
		ui_hint("sbx policy allow network %s --sandbox %s", word, sandbox);
	else
		ui_hint("sbx policy allow network %s", word);
}
