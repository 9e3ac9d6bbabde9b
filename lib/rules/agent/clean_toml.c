/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clean_toml - settings in TOML, without understanding all of it.
 *
 * How      Lines are parsed one after the other; a small state records whether a line begins inside
 *          a list or a multi-line text. Each word before a '=' is a key, and each part of a table's
 *          name. A line with a key that must stay goes as a whole, up to where its value ends; a
 *          table goes up to the next one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "clean_internal.h"

#define MAX_KEY 128

struct toml {
	const struct clean *c;
	unsigned depth; /* brackets that are open */
	char quote;	/* of the text that is open, or 0 */
	bool many;	/* it is one of three quotes */
	bool cut, cut_table;
	char key[MAX_KEY];   /* the last word */
	char found[MAX_KEY]; /* the first key of the line that must stay */
};

static bool is_open(const struct toml *t)
{
	return t->depth || t->quote;
}

static bool starts_with_three(struct slice s, size_t i, char quote)
{
	return s.n - i >= 3 && s.p[i] == (uint8_t)quote && s.p[i + 1] == (uint8_t)quote &&
	       s.p[i + 2] == (uint8_t)quote;
}

/* Inside of a text: the index behind what was read. */
static size_t read_quoted(struct toml *t, struct slice s, size_t i)
{
	if (t->quote == '"' && s.p[i] == '\\')
		return MIN(i + 2, s.n);
	if (s.p[i] != (uint8_t)t->quote || (t->many && !starts_with_three(s, i, t->quote))) {
		size_t n = strlen(t->key);

		if (n + 1 < MAX_KEY) {
			t->key[n] = (char)s.p[i];
			t->key[n + 1] = '\0';
		}
		return i + 1;
	}
	i += t->many ? 3 : 1;
	t->quote = 0;
	return i;
}

/* A number or a boolean under a name such as max_tokens is not a credential. */
static bool is_harmless(struct slice value)
{
	size_t i = 0;

	while (i < value.n && (value.p[i] == ' ' || value.p[i] == '\t'))
		i++;
	if (i < value.n && isdigit(value.p[i])) {
		while (i < value.n && (isdigit(value.p[i]) || value.p[i] == '_'))
			i++;
		return i == value.n || isspace(value.p[i]) || value.p[i] == '#';
	}
	return value.n - i >= 4 &&
	       (memcmp(value.p + i, "true", 4) == 0 ||
		       (value.n - i >= 5 && memcmp(value.p + i, "false", 5) == 0));
}

static void judge_key(struct toml *t, struct slice value)
{
	bool goes = clean_is_dropped(t->c, t->key) ||
		    (clean_is_secret_key(t->key) && !is_harmless(value));

	if (goes && !t->found[0])
		memcpy(t->found, t->key, MAX_KEY);
}

static void judge_part(struct toml *t)
{
	if ((clean_is_dropped(t->c, t->key) || clean_is_secret_key(t->key)) && !t->found[0])
		memcpy(t->found, t->key, MAX_KEY);
}

/* Outside of a text. */
static size_t read_plain(struct toml *t, struct slice s, size_t i, bool heading)
{
	char c = (char)s.p[i];
	size_t n = strlen(t->key);

	if (c == '"' || c == '\'') {
		t->many = starts_with_three(s, i, c);
		t->quote = c;
		t->key[0] = '\0';
		return i + (t->many ? 3 : 1);
	}
	if (c == '#')
		return s.n;
	if (c == '=')
		judge_key(t, slice_of(s.p + i + 1, s.n - i - 1));
	if ((c == '.' || c == ']') && heading)
		judge_part(t);
	/* a dotted key has its parts judged as well */
	if (c == '.' && !heading && t->depth == 0)
		judge_key(t, slice_of("x", 1));
	if (!heading)
		t->depth += c == '[' || c == '{';
	if (!heading && (c == ']' || c == '}') && t->depth)
		t->depth--;
	if (isalnum((unsigned char)c) || c == '_' || c == '-') {
		if (n + 1 < MAX_KEY) {
			t->key[n] = c;
			t->key[n + 1] = '\0';
		}
	} else if (c != ' ' && c != '\t') {
		t->key[0] = '\0';
	}
	return i + 1;
}

/* Reads one line; t->found is set when something in it must stay. */
static void read_line(struct toml *t, struct slice s, bool heading)
{
	t->found[0] = t->key[0] = '\0';
	for (size_t i = 0; i < s.n;)
		i = t->quote ? read_quoted(t, s, i) : read_plain(t, s, i, heading);
	if (t->quote && !t->many)
		t->quote = 0;
}

static bool is_heading(struct slice s)
{
	size_t i = 0;

	while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t'))
		i++;
	return i < s.n && s.p[i] == '[';
}

/* 1: the line stays, 0: it goes. */
static int judge_line(struct toml *t, struct slice line, struct err *err)
{
	bool inside = is_open(t), heading = !inside && is_heading(line);

	read_line(t, line, heading);
	if (heading) {
		t->cut_table = t->found[0];
		if (t->cut_table)
			t->c->told(t->c->arg, t->found);
		return !t->cut_table;
	}
	if (!inside)
		t->cut = false;
	if (t->cut_table || t->cut)
		return 0;
	if (!t->found[0])
		return 1;
	if (inside)
		return err_set(err, -EPERM, "'%s' is in the middle of a value", t->found);
	t->c->told(t->c->arg, t->found);
	t->cut = true;
	return 0;
}

int clean_toml(const struct clean *c, struct slice text, char **ret, struct err *err)
{
	struct toml t = {.c = c};
	char *out;
	size_t n = 0;

	if (text.n && memchr(text.p, '\0', text.n))
		return err_set(err, -EINVAL, "the file is not text");
	out = xmalloc(text.n + 2);
	while (text.n) {
		const uint8_t *end = memchr(text.p, '\n', text.n);
		size_t len = end ? (size_t)(end - text.p) : text.n;
		int r = judge_line(&t, slice_of(text.p, len), err);

		if (r < 0) {
			free(out);
			return r;
		}
		if (r) {
			memcpy(out + n, text.p, len);
			n += len;
			out[n++] = '\n';
		}
		len += end != NULL;
		text = slice_of(text.p + len, text.n - len);
	}
	out[n] = '\0';
	*ret = out;
	return 0;
}
