/* SPDX-License-Identifier: Apache-2.0 */
#include "oci.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "jedit.h"
#include "lib/base/mem.h"

#define MAX_PATH 4096

struct option {
	const char *name, *other; /* options with a value */
};

static const struct option with_value[] = {{"--log", NULL}, {"--log-format", NULL},
	{"--root", NULL}, {"--criu", NULL}, {"--rootless", NULL}, {"--bundle", "-b"},
	{"--console-socket", NULL}, {"--pid-file", NULL}, {"--pidfd-socket", NULL},
	{"--preserve-fds", NULL}, {"--process", "-p"}, {"--cwd", NULL}, {"--env", "-e"},
	{"--user", "-u"}, {"--additional-gids", "-g"}, {"--apparmor", NULL},
	{"--process-label", NULL}, {"--cap", "-c"}, {"--cgroup", NULL}};

static bool has_value(const char *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(with_value); i++)
		if (!strcmp(arg, with_value[i].name) ||
			(with_value[i].other && !strcmp(arg, with_value[i].other)))
			return true;
	return false;
}

/* Returns the value of an option at argv[i], in either syntax; NULL if it is another option. */
static const char *value_of(char **argv, int i, const char *name, const char *other)
{
	size_t n = strlen(name);

	if (!strcmp(argv[i], name) || !strcmp(argv[i], other))
		return argv[i + 1];
	return !strncmp(argv[i], name, n) && argv[i][n] == '=' ? argv[i] + n + 1 : NULL;
}

static enum oci_kind kind_of(const char *word)
{
	if (!strcmp(word, "create"))
		return OCI_CREATE;
	if (!strcmp(word, "run"))
		return OCI_RUN;
	return !strcmp(word, "exec") ? OCI_EXEC : OCI_OTHER;
}

void oci_parse(int argc, char **argv, struct oci_args *ret)
{
	bool seen = false;
	const char *v;

	*ret = (struct oci_args){.bundle = "."};
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-') {
			/* The command, then the container; later arguments are not runc's. */
			if (seen)
				return;
			seen = true;
			ret->kind = kind_of(argv[i]);
			continue;
		}
		v = value_of(argv, i, "--bundle", "-b");
		if (seen && v)
			ret->bundle = v;
		v = value_of(argv, i, "--process", "-p");
		if (seen && v && ret->kind == OCI_EXEC)
			ret->process = v;
		i += has_value(argv[i]);
	}
}

static bool has_variable(struct slice text, struct jedit array, const char *assignment)
{
	size_t n = strcspn(assignment, "=") + 1;
	struct jedit item = {0};

	while (jedit_next(text, array, &item))
		if (item.end - item.at > n && !memcmp(text.p + item.at + 1, assignment, n))
			return true;
	return false;
}

/* An insertion at a position of the text. */
struct insert {
	size_t at;
	char *bytes;
	size_t n;
};

/* Writes the variables that are not in the array, comma-separated, with a comma before existing
 * items. */
static void write_env(FILE *out, struct slice text, struct jedit array, const struct env *env)
{
	struct jedit item = {0};
	bool first = true, rest = jedit_next(text, array, &item);

	for (size_t i = 0; i < env->n; i++) {
		if (has_variable(text, array, env->v[i]))
			continue;
		if (!first)
			fputc(',', out);
		jedit_quote(out, env->v[i]);
		first = false;
	}
	if (!first && rest)
		fputc(',', out);
}

/* Before the existing variables. Without any, creates the member. */
static int insert_env(
	struct slice text, struct jedit process, const struct env *env, struct insert *ret)
{
	struct jedit array = {0}, none = {0};
	FILE *out = open_memstream(&ret->bytes, &ret->n);
	bool found = jedit_member(text, process, "env", &array);

	if (!out)
		return -ENOMEM;
	if (found && jedit_is(text, array, '[')) {
		ret->at = array.at + 1;
		write_env(out, text, array, env);
	} else if (!found && env->n > 0) {
		size_t at = process.at + 1;

		while (at < process.end && strchr(" \t\r\n", text.p[at]))
			at++;
		ret->at = process.at + 1;
		fputs("\"env\":[", out);
		write_env(out, text, none, env);
		fputs(at == process.end - 1 ? "]" : "],", out);
	}
	/* "env": null has no variables; it does not occur in practice, and is unchanged. */
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static void write_mount(FILE *out, const char *source, const char *place)
{
	fputs(",{\"destination\":", out);
	jedit_quote(out, place);
	fputs(",\"type\":\"bind\",\"source\":", out);
	jedit_quote(out, source);
	fputs(",\"options\":[\"bind\",\"ro\",\"nosuid\",\"nodev\",\"noexec\"]}", out);
}

/* After the existing mounts: /dev is among them, so the list is not empty. */
static int insert_mounts(
	struct slice text, struct jedit config, const struct oci_add *add, struct insert *ret)
{
	struct jedit mounts, item = {0};
	FILE *out = open_memstream(&ret->bytes, &ret->n);

	if (!out)
		return -ENOMEM;
	if (jedit_member(text, config, "mounts", &mounts) && jedit_next(text, mounts, &item)) {
		ret->at = mounts.end - 1;
		if (add->folder)
			write_mount(out, add->folder, OCI_PLACE);
		for (size_t i = 0; i < add->n_binds; i++)
			write_mount(out, add->bundle, add->binds[i]);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static char *splice_oci(struct slice text, const struct insert *a, const struct insert *b)
{
	const struct insert *first = a->at <= b->at ? a : b, *second = first == a ? b : a;
	char *out = xmalloc(text.n + a->n + b->n + 1), *p = out;

	memcpy(p, text.p, first->at);
	p += first->at;
	memcpy(p, first->bytes, first->n);
	p += first->n;
	memcpy(p, text.p + first->at, second->at - first->at);
	p += second->at - first->at;
	memcpy(p, second->bytes, second->n);
	p += second->n;
	memcpy(p, text.p + second->at, text.n - second->at);
	p[text.n - second->at] = '\0';
	return out;
}

int oci_edit(const char *config, const struct oci_add *add, char **ret)
{
	struct slice text = slice_from_str(config);
	struct insert env = {0}, mounts = {0};
	struct jedit top, process;
	int r = jedit_check(text, &top);

	if (r < 0 || !jedit_member(text, top, "process", &process) || !jedit_is(text, process, '{'))
		return -EBADMSG;
	r = insert_env(text, process, &add->env, &env);
	if (r == 0)
		r = insert_mounts(text, top, add, &mounts);
	if (r == 0)
		*ret = splice_oci(text, &env, &mounts);
	free(env.bytes);
	free(mounts.bytes);
	return r;
}

int oci_edit_process(const char *process, const struct env *env, char **ret)
{
	struct slice text = slice_from_str(process);
	struct insert in = {0}, none = {.bytes = (char *)""};
	struct jedit top;
	int r = jedit_check(text, &top);

	if (r == 0)
		r = insert_env(text, top, env, &in);
	if (r == 0)
		*ret = splice_oci(text, &in, &none);
	free(in.bytes);
	return r;
}

bool oci_has_dev(const char *config)
{
	struct slice text = slice_from_str(config);
	struct jedit top, mounts, item = {0}, v;
	char buf[MAX_PATH];
	bool has = false;

	if (jedit_check(text, &top) < 0 || !jedit_member(text, top, "mounts", &mounts))
		return false;
	/* The last mount applies: it covers the others. */
	while (jedit_next(text, mounts, &item)) {
		if (!jedit_member(text, item, "destination", &v) ||
			jedit_string(text, v, buf, sizeof(buf)) < 0 || strcmp(buf, "/dev") != 0)
			continue;
		has = jedit_member(text, item, "type", &v) &&
		      jedit_string(text, v, buf, sizeof(buf)) == 0 && !strcmp(buf, "tmpfs");
	}
	return has;
}
