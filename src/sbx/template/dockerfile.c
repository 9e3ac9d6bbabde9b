/* SPDX-License-Identifier: Apache-2.0 */
#include "dockerfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

#define MAX_LINE 65536

struct arg {
	char name[DOCKERFILE_MAX_WORD], value[DOCKERFILE_MAX_WORD];
};

struct parser {
	const char *p;
	char escape;
	struct arg args[DOCKERFILE_MAX_ARGS];
	size_t n_args, n_given; /* arguments of the user come first */
	struct dockerfile *d;
	char line[MAX_LINE];
};

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t\r");
}

/* ---- directives: comments `# key=value` before anything else ---- */

/* The value after `# key =`, or NULL. */
static const char *directive_dockerfile(const char *line, const char *key)
{
	line = skip_blanks(line);
	if (*line++ != '#')
		return NULL;
	line = skip_blanks(line);
	if (strncasecmp(line, key, strlen(key)) != 0)
		return NULL;
	line = skip_blanks(line + strlen(key));
	return *line == '=' ? skip_blanks(line + 1) : NULL;
}

static bool is_directive(const char *line)
{
	line = skip_blanks(line);
	if (*line++ != '#')
		return false;
	line = skip_blanks(line);
	line += strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	return *skip_blanks(line) == '=';
}

/* Parses them in p->d->text, where a syntax line becomes a plain comment of the same length. */
static void read_directives(struct parser *p)
{
	char *at = p->d->text;

	while (is_directive(at)) {
		const char *escape = directive_dockerfile(at, "escape");
		size_t n = strcspn(at, "\n");

		if (escape && (*escape == '`' || *escape == '\\'))
			p->escape = *escape;
		if (directive_dockerfile(at, "syntax")) {
			p->d->had_syntax = true;
			memset(at, '#', n);
		}
		at += n + (at[n] == '\n');
	}
}

/* ---- lines ---- */

/* Reads one physical line; false at the end. Longer ones are truncated. */
static bool next_physical(struct parser *p, char *buf, size_t size)
{
	size_t n = strcspn(p->p, "\n");

	if (!*p->p)
		return false;
	(void)snprintf(buf, size, "%.*s", (int)MIN(n, size - 1), p->p);
	buf[strcspn(buf, "\r")] = '\0';
	p->p += n + (p->p[n] == '\n');
	return true;
}

/* Whether the next line continues this one. Removes the sign. */
static bool goes_on(const struct parser *p, char *s)
{
	size_t n = strlen(s);

	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	if (n == 0 || s[n - 1] != p->escape)
		return false;
	s[n - 1] = '\0';
	return true;
}

static bool is_empty(const char *line)
{
	line = skip_blanks(line);
	return *line == '\0' || *line == '#';
}

/* Reads one instruction into p->line. Comments and empty lines inside are skipped. */
static bool next_line(struct parser *p)
{
	size_t used = 0;
	bool more = true, any = false;

	while (more && next_physical(p, p->line + used, sizeof(p->line) - used)) {
		if (is_empty(p->line + used))
			continue;
		any = true;
		more = goes_on(p, p->line + used);
		used += strlen(p->line + used);
		if (used + 2 >= sizeof(p->line))
			more = false;
	}
	p->line[used] = '\0';
	return any;
}

/* The word after `<<`, `<<-`, with or without quotes; the text after it, or NULL. */
static const char *heredoc_word(const char *s, char *word, size_t size)
{
	size_t n = 0;

	s = strstr(s, "<<");
	if (!s)
		return NULL;
	s += 2;
	s += *s == '-';
	s += *s == '"' || *s == '\'';
	while ((isalnum((unsigned char)*s) || *s == '_') && n + 1 < size)
		word[n++] = *s++;
	word[n] = '\0';
	return s;
}

static void skip_heredocs(struct parser *p)
{
	char word[DOCKERFILE_MAX_WORD], line[1024];
	const char *s = p->line;

	while ((s = heredoc_word(s, word, sizeof(word)))) {
		if (!word[0])
			continue;
		while (next_physical(p, line, sizeof(line)))
			if (!strcmp(line + strspn(line, "\t"), word))
				break;
	}
}

/* ---- variables ---- */

static const char *value_of(const struct parser *p, const char *name, size_t n)
{
	for (size_t i = 0; i < p->n_args; i++)
		if (strlen(p->args[i].name) == n && !memcmp(p->args[i].name, name, n))
			return p->args[i].value;
	return NULL;
}

static void add_arg(struct parser *p, const char *assignment)
{
	const char *eq = strchr(assignment, '=');
	size_t n = eq ? (size_t)(eq - assignment) : strlen(assignment);
	struct arg *a = &p->args[p->n_args];
	const char *value = eq ? eq + 1 : "";
	size_t k = strlen(value);

	if (value_of(p, assignment, n) || p->n_args == DOCKERFILE_MAX_ARGS ||
		n >= sizeof(a->name) || k >= sizeof(a->value))
		return;
	if (k >= 2 && (value[0] == '"' || value[0] == '\'') && value[k - 1] == value[0])
		value++, k -= 2;
	(void)snprintf(a->name, sizeof(a->name), "%.*s", (int)n, assignment);
	(void)snprintf(a->value, sizeof(a->value), "%.*s", (int)k, value);
	p->n_args++;
}

static void append_dockerfile(char *out, const char *text, size_t n)
{
	size_t used = strlen(out);

	(void)snprintf(out + used, DOCKERFILE_MAX_WORD - used, "%.*s", (int)n, text);
}

/* At '$'; the text after the variable. ${A}, ${A:-b}, ${A-b}, $A. */
static const char *expand_one(const struct parser *p, const char *s, char *out)
{
	bool braces = s[1] == '{';
	const char *name = s + 1 + braces, *value, *rest;
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
	rest = name + n;
	value = value_of(p, name, n);
	if (braces) {
		size_t k = strcspn(rest, "}"), skip = rest[0] == ':' ? 2 : 1;

		if ((!value || !value[0]) && k > skip && rest[skip - 1] == '-')
			append_dockerfile(out, rest + skip, k - skip);
		rest += k + (rest[k] == '}');
	}
	if (value)
		append_dockerfile(out, value, strlen(value));
	return n > 0 ? rest : s + 1;
}

static void expand_dockerfile(const struct parser *p, const char *s, char out[DOCKERFILE_MAX_WORD])
{
	out[0] = '\0';
	while (*s)
		if (*s == '$')
			s = expand_one(p, s, out);
		else
			append_dockerfile(out, s++, 1);
}

/* ---- instructions ---- */

/* The next word, on the heap; NULL at the end. */
static char *next_word(const char **s)
{
	size_t n;
	char *word;

	*s = skip_blanks(*s);
	n = strcspn(*s, " \t\r");
	word = n > 0 ? xstrndup(*s, n) : NULL;
	*s += n;
	return word;
}

static int take_from(struct parser *p, const char *rest, struct err *err)
{
	AUTO_FREE char *ref = next_word(&rest), *as = NULL, *name = NULL;
	struct dockerfile_stage *stage = &p->d->stages[p->d->n];

	while (ref && ref[0] == '-') { /* --platform */
		free(ref);
		ref = next_word(&rest);
	}
	as = next_word(&rest);
	name = next_word(&rest);
	if (!ref || (as && (strcasecmp(as, "as") != 0 || !name)))
		return err_set(err, -EINVAL, "Dockerfile: incomplete instruction 'FROM%.60s'",
			p->line + 4);
	if (p->d->n == DOCKERFILE_MAX_STAGES)
		return err_set(
			err, -EINVAL, "Dockerfile: more than %d stages", DOCKERFILE_MAX_STAGES);
	if (strlen(ref) >= sizeof(stage->ref) ||
		str_copy(stage->name, sizeof(stage->name), name ? name : "") < 0)
		return err_set(err, -EINVAL, "Dockerfile: a name after FROM is too long");
	expand_dockerfile(p, ref, stage->ref);
	if (!stage->ref[0])
		return err_set(
			err, -EINVAL, "Dockerfile: 'FROM %.60s' is empty without its ARG", ref);
	p->d->n++;
	return 0;
}

static int take_line(struct parser *p, struct err *err)
{
	const char *rest = p->line;
	AUTO_FREE char *word = next_word(&rest);

	if (!word)
		return 0;
	if (!strcasecmp(word, "FROM"))
		return take_from(p, rest, err);
	if (!strcasecmp(word, "ARG") && p->d->n == 0) {
		AUTO_FREE char *assignment = next_word(&rest);

		if (assignment)
			add_arg(p, assignment);
	}
	if (!strcasecmp(word, "RUN") || !strcasecmp(word, "COPY") || !strcasecmp(word, "ADD"))
		skip_heredocs(p);
	return 0;
}

int dockerfile_parse(
	const char *text, const char *const *args, struct dockerfile *ret, struct err *err)
{
	AUTO_FREE struct parser *p = xcalloc(1, sizeof(*p));
	int r = 0;

	*ret = (struct dockerfile){.text = xstrdup(text)};
	*p = (struct parser){.escape = '\\', .d = ret};
	read_directives(p);
	p->p = ret->text;
	while (args && *args)
		add_arg(p, *args++);
	while (r == 0 && next_line(p))
		r = take_line(p, err);
	if (r == 0 && ret->n == 0)
		r = err_set(err, -EINVAL, "Dockerfile: no FROM instruction");
	if (r < 0)
		dockerfile_done(ret);
	return r;
}

void dockerfile_done(struct dockerfile *d)
{
	free(d->text);
	*d = (struct dockerfile){0};
}

/* The earlier stage of that name; d->n if there is none. */
static size_t find_stage(const struct dockerfile *d, size_t before, const char *ref)
{
	while (before-- > 0)
		if (d->stages[before].name[0] && !strcasecmp(d->stages[before].name, ref))
			return before;
	return d->n;
}

bool dockerfile_is_stage(const struct dockerfile *d, size_t stage)
{
	return find_stage(d, stage, d->stages[stage].ref) < d->n;
}

const char *dockerfile_base(const struct dockerfile *d)
{
	size_t at = d->n - 1, next;

	while ((next = find_stage(d, at, d->stages[at].ref)) < d->n)
		at = next;
	return d->stages[at].ref;
}

enum dockerfile_from dockerfile_kind(const char *ref, char *name, size_t size)
{
	static const char sandbox[] = "docker/sandbox-templates", own[] = "sbx/";
	const char *colon;

	name[0] = '\0';
	if (str_starts(ref, "docker.io/"))
		ref += strlen("docker.io/");
	if (str_starts(ref, sandbox)) {
		ref += strlen(sandbox);
		if (*ref != ':' && *ref != '@' && *ref != '\0')
			return DOCKERFILE_OTHER;
		if (*ref == ':')
			(void)snprintf(name, size, "%.*s", (int)strcspn(ref + 1, "@"), ref + 1);
		return DOCKERFILE_SANDBOX;
	}
	if (!str_starts(ref, own) || strchr(ref + strlen(own), '/'))
		return DOCKERFILE_OTHER;
	ref += strlen(own);
	colon = strchr(ref, ':');
	(void)snprintf(name, size, "%.*s", (int)(colon ? (size_t)(colon - ref) : strlen(ref)), ref);
	return name[0] ? DOCKERFILE_TEMPLATE : DOCKERFILE_OTHER;
}
