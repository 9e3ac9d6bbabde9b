/* SPDX-License-Identifier: Apache-2.0 */
/* --ref and --command: the source of a value that is not stored. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/sbx/host/host.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "secret_api.h"

#define MAX_REFRESH_S (30u * 86400)

static int find_program(const char *name, char *buf, size_t size, struct problem *p)
{
	if (name[0] == '/')
		return str_copy(buf, size, name) < 0
			       ? err_set(&p->err, -ENAMETOOLONG, "%s is too long", name)
			       : 0;
	if (strchr(name, '/'))
		return err_set(&p->err, -EINVAL, "'%s' is not an absolute path", name);
	if (check_find_program(name, buf, size))
		return 0;
	(void)err_set(&p->err, -ENOENT,
		"program '%s' not found: install it, or use its absolute path", name);
	return problem_hint(p, -ENOENT, "sbx help secret set");
}

/* docker:HELPER:SERVER */
static int take_docker(const char *helper, json_t **ret, struct problem *p)
{
	const char *colon = strchr(helper, ':');
	AUTO_FREE char *name = NULL;
	char program[PATHS_MAX];
	int r;

	if (!colon || colon == helper || !colon[1])
		return -EBADMSG;
	name = xasprintf("docker-credential-%.*s", (int)(colon - helper), helper);
	r = find_program(name, program, sizeof(program), p);
	if (r < 0)
		return r;
	*ret = json_pack(
		"{s:s, s:s, s:[s]}", "kind", "docker", "program", program, "args", colon + 1);
	return *ret ? 0 : err_set(&p->err, -EINVAL, "the reference is not UTF-8");
}

static int take_program(const char *name, json_t *args, json_t **ret, struct problem *p)
{
	char program[PATHS_MAX];
	int r = find_program(name, program, sizeof(program), p);

	if (r < 0) {
		json_decref(args);
		return r;
	}
	*ret = json_pack("{s:s, s:s, s:o}", "kind", "first-line", "program", program, "args", args);
	return *ret ? 0 : err_set(&p->err, -EINVAL, "the reference is not UTF-8");
}

/* op://VAULT/ITEM/FIELD or op://VAULT/ITEM/SECTION/FIELD, of 1Password */
static int take_op(const char *path, json_t **ret, struct problem *p)
{
	unsigned parts = 1;

	for (const char *c = path; *c; c++) {
		if (*c == '/' && (c == path || !c[1] || c[1] == '/'))
			return -EBADMSG;
		parts += *c == '/';
	}
	if (parts < 3 || parts > 4)
		return -EBADMSG;
	return take_program(
		"op", json_pack("[s, s, s+]", "read", "--no-newline", "op://", path), ret, p);
}

/* The name or the ARN of a secret; an ARN has the region. */
static int take_aws(const char *id, json_t **ret, struct problem *p)
{
	static const char service[] = ":secretsmanager:";
	const char *region = str_starts(id, "arn:") ? strstr(id, service) : NULL;
	json_t *args;

	if (!id[0] || id[0] == '-' || (str_starts(id, "arn:") && !region))
		return -EBADMSG;
	args = json_pack("[s, s, s, s, s, s, s, s]", "secretsmanager", "get-secret-value",
		"--secret-id", id, "--query", "SecretString", "--output", "text");
	if (region) {
		region += sizeof(service) - 1;
		(void)json_array_append_new(args, json_string("--region"));
		(void)json_array_append_new(args, json_stringn(region, strcspn(region, ":")));
	}
	return take_program("aws", args, ret, p);
}

static int take_pass(const char *name, json_t **ret, struct problem *p)
{
	if (!name[0] || name[0] == '-')
		return -EBADMSG;
	return take_program("pass", json_pack("[s, s]", "show", name), ret, p);
}

static int take_form(const char *text, json_t **ret, struct problem *p)
{
	static const struct {
		const char *begin;
		int (*take)(const char *rest, json_t **ret, struct problem *p);
	} forms[] = {{"docker:", take_docker}, {"op://", take_op}, {"aws:", take_aws},
		{"pass:", take_pass}};
	int r = -EBADMSG;

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (str_starts(text, forms[i].begin))
			r = forms[i].take(text + strlen(forms[i].begin), ret, p);
	if (r != -EBADMSG)
		return r;
	(void)err_set(&p->err, -EINVAL,
		"invalid --ref '%s': expected docker:HELPER:SERVER, op://VAULT/ITEM/FIELD, aws:SECRET or pass:NAME",
		text);
	return problem_usage(p, -EINVAL, "secret set");
}

/* Returns the next word of a command line, unquoted, in place; NULL at the end. *bad: a quote is
 * open. */
static char *next_word(char **rest, bool *bad)
{
	char *in = *rest + strspn(*rest, " \t"), *out = in, *word = in, quote = 0;

	if (!*in)
		return NULL;
	for (; *in && (quote || (*in != ' ' && *in != '\t')); in++) {
		if (!quote && (*in == '\'' || *in == '"'))
			quote = *in;
		else if (quote && *in == quote)
			quote = 0;
		else
			*out++ = *in;
	}
	*bad = quote != 0;
	*rest = in + (*in != '\0');
	*out = '\0';
	return word;
}

static int take_command(const char *text, json_t **ret, struct problem *p)
{
	AUTO_FREE char *copy = xstrdup(text);
	AUTO_JSON json_t *args = json_array();
	char *rest = copy;
	bool bad = false;
	const char *first = next_word(&rest, &bad), *word;

	while (!bad && (word = next_word(&rest, &bad)))
		(void)json_array_append_new(args, json_string(word));
	if (bad || !first || !first[0]) {
		(void)err_set(&p->err, -EINVAL,
			bad ? "invalid --command: missing closing quote"
			    : "invalid --command: missing program");
		return problem_usage(p, -EINVAL, "secret set");
	}
	return take_program(first, json_incref(args), ret, p);
}

static int take_refresh(const char *text, json_t *ref, const char *verb, struct problem *p)
{
	uint64_t seconds = 0;

	if (strcmp(text, "on-demand") != 0 &&
		(str_to_seconds(text, &seconds) < 0 || seconds == 0 || seconds > MAX_REFRESH_S)) {
		(void)err_set(&p->err, -EINVAL,
			"invalid duration '%s': use a form such as 30m, 8h or 7d, or on-demand",
			text);
		return problem_usage(p, -EINVAL, verb);
	}
	(void)json_object_set_new(ref, "refresh_s", json_integer((json_int_t)seconds));
	return 0;
}

int secret_take_ref(const struct opts *o, const char *verb, const char *refresh, json_t **ret,
	struct problem *p)
{
	const char *ref = opts_value(o, "ref"), *command = opts_value(o, "command"),
		   *span = opts_value(o, "refresh");
	int r;

	*ret = NULL;
	if ((ref && command) || (span && !ref && !command)) {
		(void)err_set(&p->err, -EINVAL,
			span && !ref ? "--refresh requires --ref or --command"
				     : "--ref and --command are mutually exclusive");
		return problem_usage(p, -EINVAL, verb);
	}
	if (!ref && !command)
		return 0;
	r = ref ? take_form(ref, ret, p) : take_command(command, ret, p);
	return r < 0 ? r : take_refresh(span ? span : refresh, *ret, verb, p);
}
