/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "registry_file.h"
#include "secret_api.h"
#include "secret_verbs.h"

const struct opt_def secret_rm_opts[] = {
	{'g', "global", NULL, "remove the credential for all sandboxes (default)"},
	{0, "sandbox", "NAME", "remove the credential of this sandbox"},
	{'f', "force", NULL, "do not prompt for confirmation"},
	{0},
};
const struct opt_def secret_unlock_opts[] = {{0}};

/* Another scope, or a similar name. */
static int not_there(const json_t *answer, const char *name, const char *sandbox, struct problem *p)
{
	const char *words[SECRET_MAX_WORDS + 1] = {NULL}, *near;
	const json_t *s;
	size_t i;

	(void)err_set(&p->err, -ENOENT, "credential '%s' not found for %s%s", name,
		sandbox ? "sandbox " : "all sandboxes", sandbox ? sandbox : "");
	json_array_foreach (json_object_get(answer, "secrets"), i, s) {
		if (strcmp(api_str(s, "name"), name) == 0)
			return strcmp(api_str(s, "scope"), "global") == 0
				       ? problem_hint(p, -ENOENT, "sbx secret rm -g %s", name)
				       : problem_hint(p, -ENOENT, "sbx secret rm --sandbox %s %s",
						 api_str(s, "sandbox"), name);
		if (i < SECRET_MAX_WORDS)
			words[i] = api_str(s, "name");
	}
	near = opt_nearest(name, words);
	if (near)
		return problem_hint(p, -ENOENT, "sbx secret rm %s", near);
	return problem_hint(p, -ENOENT, "sbx secret ls");
}

/* Items of a name: the set credential, and the tokens of a login. */
static const char *const with_tokens[] = {"", ".access", ".refresh"};

static bool has_any(const json_t *answer, const char *name, const char *sandbox)
{
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(with_tokens) && !found; i++) {
		AUTO_FREE char *full = xasprintf("%s%s", name, with_tokens[i]);

		found = secret_find(answer, full, sandbox) != NULL;
	}
	return found;
}

static int check_rm(
	const struct opts *o, const char *sandbox, json_t **ret_answer, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	const char *name = o->args.v[0];
	int r = secret_check_sandbox(sandbox, p);

	if (r == 0)
		r = secret_list(&answer, p);
	if (r < 0)
		return r;
	if (!has_any(answer, name, sandbox))
		return not_there(answer, name, sandbox, p);
	*ret_answer = json_incref(answer);
	if (opts_has(o, "force"))
		return 0;
	if (!ui_can_ask()) {
		(void)err_set(&p->err, -EPERM,
			"refusing to remove credential '%s' without confirmation: stdin is not a terminal",
			name);
		return problem_hint(p, -EPERM, "sbx secret rm -f %s%s%s%s",
			sandbox ? "--sandbox " : "", sandbox ? sandbox : "", sandbox ? " " : "",
			name);
	}
	if (ui_confirm("Remove credential '%s' of %s%s?", name,
		    sandbox ? "sandbox " : "all sandboxes", sandbox ? sandbox : ""))
		return 0;
	return err_set(&p->err, -ECANCELED, "credential '%s' was not removed", name);
}

static int remove_one(const char *name, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *quoted_name = api_quote(name);
	AUTO_FREE char *quoted = sandbox ? api_quote(sandbox) : xstrdup("");
	AUTO_FREE char *path =
		xasprintf("/v1/secrets/%s%s%s", quoted_name, sandbox ? "?sandbox=" : "", quoted);

	return api_call("DELETE", path, NULL, SECRET_TIMEOUT_MS, NULL, p);
}

/* Removed with the last credential that it is for: without it the others could not be used. */
static void remove_file(const char *name)
{
	AUTO_JSON json_t *left = NULL;
	struct problem ignored = {0};
	const json_t *s;
	size_t i;

	if (secret_list(&left, &ignored) < 0)
		return;
	json_array_foreach (json_object_get(left, "secrets"), i, s)
		if (strcmp(api_str(s, "name"), name) == 0)
			return;
	registry_file_remove(name);
}

int secret_rm_run(struct opts *o)
{
	AUTO_JSON json_t *answer = NULL;
	const char *sandbox = NULL;
	struct problem p = {0};
	int r = secret_scope(o, "secret rm", &sandbox, &p);

	if (r == 0)
		r = check_rm(o, sandbox, &answer, &p);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(with_tokens); i++) {
		AUTO_FREE char *full = xasprintf("%s%s", o->args.v[0], with_tokens[i]);

		if (secret_find(answer, full, sandbox))
			r = remove_one(full, sandbox, &p);
	}
	if (r < 0)
		return ui_problem(&p, r);
	remove_file(o->args.v[0]);
	printf("Credential '%s' removed from %s%s\n", o->args.v[0],
		sandbox ? "sandbox " : "all sandboxes", sandbox ? sandbox : "");
	return EXIT_OK;
}

static int ask_twice(struct secret_value *v, struct problem *p)
{
	AUTO_SECRET_VALUE struct secret_value again = {0};
	int r = secret_value_init(&again, p);

	if (r == 0)
		r = secret_value_ask(&again, "Repeat the passphrase: ", p);
	if (r == 0 && (again.n != v->n || memcmp(again.p, v->p, v->n) != 0))
		r = err_set(&p->err, -EINVAL, "the passphrases differ: nothing was changed");
	return r;
}

static int get_passphrase(bool is_new, struct secret_value *v, struct problem *p)
{
	int r = secret_value_init(v, p);

	if (r < 0)
		return r;
	if (!ui_can_ask()) {
		r = secret_value_read(v, STDIN_FILENO, p);
		(void)secret_value_chomp(v);
	} else {
		r = secret_value_ask(v,
			is_new ? "New passphrase of the vault: " : "Passphrase of the vault: ", p);
		if (r == 0 && is_new && v->n)
			r = ask_twice(v, p);
	}
	if (r == 0 && v->n == 0)
		r = err_set(&p->err, -EINVAL, "the passphrase is empty: nothing was changed");
	return r;
}

/* Returns 1 if there is nothing to unlock. */
static int check_locked(bool *ret_new, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	int r = api_call("GET", "/v1/secrets/status", NULL, SECRET_TIMEOUT_MS, &s, p);

	if (r < 0)
		return r;
	*ret_new = api_int(s, "generation") == 0;
	/* a new vault may be created with a passphrase */
	return !json_is_true(json_object_get(s, "locked")) &&
	       strcmp(api_str(s, "state"), "empty") != 0;
}

int secret_unlock_run(struct opts *o)
{
	AUTO_SECRET_VALUE struct secret_value v = {0};
	AUTO_CLOSE int fd = -1;
	struct problem p = {0};
	bool is_new = false;
	int r = check_locked(&is_new, &p);

	if (r > 0) {
		ui_note("The vault is not locked.");
		return EXIT_OK;
	}
	if (r == 0)
		r = get_passphrase(is_new, &v, &p);
	if (r == 0)
		r = fd = secret_value_pass(&v, &p);
	if (r >= 0)
		r = api_call_passing(
			"POST", "/v1/secrets/unlock", NULL, fd, SECRET_TIMEOUT_MS, NULL, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s The vault is unlocked\n", ui_tick());
	return EXIT_OK;
}
