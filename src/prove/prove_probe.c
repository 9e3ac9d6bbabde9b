/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_probe.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "prove_clean.h"

const char *const probe_groups[] = {"files", "airlock", "kernel", "network", "credentials",
	"authority", "docker", "host", "recovery", NULL};
static_assert(ARRAY_LEN(probe_groups) == PROBE_N_GROUPS + 1, "one name a group");
const char *const probe_part_words[] = {"before", "inside", "outside"};

int probe_group_find(const char *name)
{
	for (int i = 0; probe_groups[i]; i++)
		if (strcmp(probe_groups[i], name) == 0)
			return i;
	return -1;
}

bool probe_is_recovery(const struct probe *p)
{
	return strcmp(probe_groups[p->group], "recovery") == 0;
}

void probe_done(struct probe *p)
{
	free(p->id);
	free(p->path);
	free(p->title);
	free(p->tried);
	free(p->means);
	for (size_t i = 0; i < p->n_again; i++)
		free(p->again[i]);
	for (size_t i = 0; i < PROBE_N_PARTS; i++)
		free(p->part[i]);
	*p = (struct probe){0};
}

/* ---- the header ---- */

enum key {
	KEY_TITLE,
	KEY_TRIED,
	KEY_MEANS,
	KEY_QUICK,
	KEY_ON,
	KEY_ALONE,
	KEY_SECONDS,
	KEY_AGAIN,
	N_KEYS
};

static const char *const key_words[] = {
	"title", "tried", "means", "quick", "on", "alone", "seconds", "again"};
_Static_assert(ARRAY_LEN(key_words) == N_KEYS, "one word per key");

struct parser {
	struct slice rest;
	unsigned line;
	const char *path;
	struct err *err;
	char *value[N_KEYS]; /* being collected */
	unsigned at[N_KEYS]; /* the line where it began */
};

#define WRONG(ps, ...) wrong_probe(ps, (ps)->line, __VA_ARGS__)

PRINTF_LIKE(3, 4)
static int wrong_probe(struct parser *ps, unsigned line, const char *fmt, ...)
{
	va_list ap;
	char text[256];

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(ps->err, -EINVAL, "%s:%u: %s", ps->path, line, text);
}

static bool starts_probe(struct slice s, const char *prefix)
{
	return s.n >= strlen(prefix) && memcmp(s.p, prefix, strlen(prefix)) == 0;
}

static struct slice behind_probe(struct slice s, size_t n)
{
	return slice_of(s.p + n, s.n - n);
}

static bool next_probe(struct parser *ps, struct slice *ret)
{
	if (ps->rest.n == 0)
		return false;
	*ret = slice_next_line(&ps->rest);
	ps->line++;
	return true;
}

static int add_value(struct parser *ps, size_t key, struct slice more)
{
	AUTO_FREE char *clean = NULL;
	char *old = ps->value[key];

	more = slice_trim(more);
	if (more.n == 0)
		return WRONG(ps, "missing value of %s", key_words[key]);
	if (more.n > PROBE_MAX_VALUE || (old && strlen(old) + more.n > PROBE_MAX_VALUE))
		return WRONG(ps, "%s is longer than %d bytes", key_words[key], PROBE_MAX_VALUE);
	clean = prove_clean(more, PROBE_MAX_VALUE + 8);
	ps->value[key] = xasprintf("%s%s%s", old ? old : "", old ? " " : "", clean);
	free(old);
	return 0;
}

/* "# key: value" */
static int take_key(struct parser *ps, struct slice line, size_t *ret_key)
{
	const uint8_t *colon = memchr(line.p, ':', line.n);
	size_t n = colon ? (size_t)(colon - line.p) : 0;

	if (!colon)
		return WRONG(ps, "expected '# key: value'");
	for (size_t i = 0; i < N_KEYS; i++) {
		if (!slice_eq_str(slice_of(line.p, n), key_words[i]))
			continue;
		if (ps->value[i])
			return WRONG(ps, "duplicate key %s", key_words[i]);
		*ret_key = i;
		ps->at[i] = ps->line;
		return add_value(ps, i, behind_probe(line, n + 1));
	}
	return WRONG(ps, "unknown key '%.*s'", (int)MIN(n, (size_t)40), (const char *)line.p);
}

/* Reads up to the line of the first part, which is returned. */
static int read_header(struct parser *ps, struct slice *ret_part)
{
	struct slice line;
	size_t key = N_KEYS;
	int r = 0;

	while (r == 0 && next_probe(ps, &line)) {
		if (starts_probe(line, "#:")) {
			*ret_part = line;
			return 0;
		}
		if (starts_probe(line, "#   ") && key == N_KEYS)
			r = WRONG(ps, "continuation line without a key above it");
		else if (starts_probe(line, "#   "))
			r = add_value(ps, key, behind_probe(line, 4));
		else if (starts_probe(line, "# "))
			r = take_key(ps, behind_probe(line, 2), &key);
		else
			r = WRONG(ps,
				"invalid header line: expected '# key: value', '#: before', '#: "
				"inside' or '#: outside'");
	}
	return r < 0 ? r : WRONG(ps, "no part: expected '#: before', '#: inside' or '#: outside'");
}

/* ---- the parts ---- */

static int part_of(struct parser *ps, struct slice line, size_t *ret)
{
	struct slice word = slice_trim(behind_probe(line, 2));

	for (size_t i = 0; i < PROBE_N_PARTS; i++)
		if (slice_eq_str(word, probe_part_words[i])) {
			*ret = i;
			return 0;
		}
	return WRONG(ps, "unknown part '%.*s': expected before, inside or outside",
		(int)MIN(word.n, (size_t)40), (const char *)word.p);
}

static int read_parts(struct parser *ps, struct slice line, struct probe *p)
{
	bool more = true;

	for (size_t last = 0; more;) {
		const uint8_t *from = ps->rest.p;
		size_t part = 0;
		int r = part_of(ps, line, &part);
		unsigned at = ps->line;

		if (r < 0)
			return r;
		if (p->part[part] || part < last)
			return WRONG(ps, "parts must be before, inside, outside, once each");
		last = part;
		line = slice_of(from, 0);
		while ((more = next_probe(ps, &line)) && !starts_probe(line, "#:"))
			;
		struct slice body = slice_of(from, (size_t)((more ? line.p : ps->rest.p) - from));

		if (slice_trim(body).n == 0 || strspn((const char *)body.p, "\n\t ") >= body.n)
			return wrong_probe(ps, at, "part %s is empty", probe_part_words[part]);
		p->part[part] = slice_dup(body);
	}
	return 0;
}

/* ---- values ---- */

static int take_again(struct parser *ps, char *text, struct probe *p)
{
	for (char *save = NULL, *w = strtok_r(text, " ", &save); w;
		w = strtok_r(NULL, " ", &save)) {
		if (p->n_again == PROBE_MAX_AGAIN)
			return wrong_probe(ps, ps->at[KEY_AGAIN], "again: more than %d probes",
				PROBE_MAX_AGAIN);
		p->again[p->n_again++] = xstrdup(w);
	}
	return 0;
}

static int yes_or_no(struct parser *ps, size_t key, const char *yes, const char *no, bool *ret)
{
	const char *v = ps->value[key];

	*ret = v && strcmp(v, yes) == 0;
	if (v && !*ret && strcmp(v, no) != 0)
		return wrong_probe(
			ps, ps->at[key], "invalid %s: expected %s or %s", key_words[key], yes, no);
	return 0;
}

static int take_values(struct parser *ps, struct probe *p)
{
	const char *seconds = ps->value[KEY_SECONDS];
	uint64_t n = PROBE_SECONDS;
	int r;

	for (size_t i = KEY_TITLE; i <= KEY_MEANS; i++)
		if (!ps->value[i])
			return wrong_probe(ps, 1, "%s is missing", key_words[i]);
	if (strlen(ps->value[KEY_TITLE]) > PROBE_MAX_TITLE)
		return wrong_probe(
			ps, ps->at[KEY_TITLE], "title is longer than %d bytes", PROBE_MAX_TITLE);
	if (seconds && str_to_u64(seconds, 1, PROBE_MAX_SECONDS, &n) < 0)
		return wrong_probe(ps, ps->at[KEY_SECONDS], "invalid seconds: expected 1 to %d",
			PROBE_MAX_SECONDS);
	p->seconds = (unsigned)n;
	r = yes_or_no(ps, KEY_QUICK, "yes", "no", &p->quick);
	if (r == 0)
		r = yes_or_no(ps, KEY_ON, "twin", "sandbox", &p->twin);
	if (r == 0)
		r = yes_or_no(ps, KEY_ALONE, "yes", "no", &p->alone);
	if (r == 0 && ps->value[KEY_AGAIN])
		r = take_again(ps, ps->value[KEY_AGAIN], p);
	if (r < 0)
		return r;
	p->title = TAKE(ps->value[KEY_TITLE]);
	p->tried = TAKE(ps->value[KEY_TRIED]);
	p->means = TAKE(ps->value[KEY_MEANS]);
	return 0;
}

static int check_whole(struct parser *ps, const struct probe *p)
{
	bool recovery = probe_is_recovery(p);

	if (p->n_again && (!recovery || !p->part[PROBE_BEFORE]))
		return wrong_probe(ps, ps->at[KEY_AGAIN],
			"again requires the group recovery and a part before");
	if (p->alone && !recovery)
		return wrong_probe(ps, ps->at[KEY_ALONE], "alone requires the group recovery");
	if (recovery && !p->twin)
		return wrong_probe(ps, 1, "missing '# on: twin': required in the group recovery");
	if (!p->n_again && !p->part[PROBE_INSIDE] && !p->part[PROBE_OUTSIDE])
		return wrong_probe(ps, ps->line, "missing part inside or outside");
	return 0;
}

int probe_parse(struct slice text, const char *group, const char *name, const char *path,
	struct probe *ret, struct err *err)
{
	struct parser ps = {.rest = text, .path = path, .err = err};
	struct slice line = {0};
	int g = probe_group_find(group), r;

	if (g < 0)
		return err_set(err, -EINVAL, "%s: unknown group '%s'", path, group);
	if (text.n > PROBE_MAX_FILE)
		return err_set(err, -EFBIG, "%s: more than %d bytes", path, PROBE_MAX_FILE);
	if (text.n == 0 || memchr(text.p, 0, text.n))
		return err_set(err, -EINVAL, "%s: not a text file", path);
	ret->group = (unsigned)g;
	ret->id = xasprintf("%s/%s", group, name);
	ret->path = xstrdup(path);
	r = read_header(&ps, &line);
	if (r == 0)
		r = read_parts(&ps, line, ret);
	if (r == 0)
		r = take_values(&ps, ret);
	if (r == 0)
		r = check_whole(&ps, ret);
	for (size_t i = 0; i < N_KEYS; i++)
		free(ps.value[i]);
	if (r < 0)
		probe_done(ret);
	return r;
}
