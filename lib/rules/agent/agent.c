/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include <stdio.h>
#include "lib/base/mem.h"

static void list_done(struct agent_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].a);
		free(l->v[i].b);
	}
}

void agent_done(struct agent *a)
{
	struct agent_list *lists[] = {&a->flag, &a->package, &a->pin, &a->env, &a->service,
		&a->host, &a->setup_host, &a->history, &a->import, &a->drop, &a->seed,
		&a->key_seed};

	free(a->name);
	free(a->title);
	free(a->about);
	free(a->base);
	free(a->node);
	free(a->command);
	free(a->publisher);
	free(a->unavailable);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		list_done(lists[i]);
	*a = (struct agent){0};
}

bool agent_is_built(const struct agent *a)
{
	return a->package.n > 0 || a->node;
}

const char *agent_template(const struct agent *a)
{
	return agent_is_built(a) ? a->name : a->base;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool is_package_part(const char *s, size_t n)
{
	return n > 0 && s[0] != '.' && s[0] != '_' && strspn(s, LOWER DIGITS "-._~") >= n;
}

bool agent_is_package(const char *s)
{
	const char *slash;

	if (strlen(s) > AGENT_MAX_WORD || s[0] == '-')
		return false;
	if (s[0] != '@')
		return is_package_part(s, strlen(s));
	slash = strchr(++s, '/');
	return slash && is_package_part(s, (size_t)(slash - s)) && slash[1] != '-' &&
	       is_package_part(slash + 1, strlen(slash + 1));
}

/* Three numbers, and perhaps what semver allows after them. */
bool agent_is_version(const char *s)
{
	for (int i = 0; i < 3; i++) {
		size_t n = strspn(s, DIGITS);

		if (n == 0 || n > 12 || (i < 2 && s[n] != '.'))
			return false;
		s += n + (i < 2);
	}
	return !*s || ((*s == '-' || *s == '+') && s[1] && strlen(s) < AGENT_MAX_WORD &&
			      !s[strspn(s, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-.+")]);
}

bool agent_is_digest(const char *s)
{
	static const char begin[] = "sha512-";
	size_t n = strlen(begin);

	return strncmp(s, begin, n) == 0 && strlen(s) == n + 88 &&
	       !s[n + strspn(s + n, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "+/=")];
}

/* The text between quotes in JSON and in a basic string of TOML. */
static char *quote_agent(const char *s)
{
	char *out = xmalloc(strlen(s) * 6 + 1), *p = out;

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			*p++ = '\\';
		if (c < 0x20 || c == 0x7f)
			p += sprintf(p, "\\u%04x", c);
		else
			*p++ = (char)c;
	}
	*p = '\0';
	return out;
}

char *agent_fill_seed(const char *text, const char *workspace, const char *id)
{
	AUTO_FREE char *quoted = quote_agent(workspace);
	char *out = xstrdup("");

	while (*text) {
		size_t n = strcspn(text, "%");
		bool is_place = text[n] && (text[n + 1] == 'w' || text[n + 1] == 'i');
		AUTO_FREE char *before = out;

		if (text[n] && !is_place)
			n++; /* a percent sign is one */
		out = xasprintf("%s%.*s%s", before, (int)n, text,
			!is_place	     ? ""
			: text[n + 1] == 'w' ? quoted
					     : id);
		text += n + (is_place ? 2 : 0);
	}
	return out;
}
