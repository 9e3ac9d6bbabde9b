/* SPDX-License-Identifier: Apache-2.0 */
#include "opt.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void opt_list_add(struct opt_list *l, const char *s)
{
	l->v = xrealloc(l->v, (l->n + 2) * sizeof(*l->v));
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
}

void opts_done(struct opts *o)
{
	for (size_t i = 0; i < OPT_MAX_DEFS; i++)
		free(o->values[i].v);
	free(o->args.v);
	free(o->rest.v);
	*o = (struct opts){0};
}

static size_t find_letter(const struct opt_def *defs, char c)
{
	size_t i = 0;

	while (defs[i].name && (defs[i].letter != c || c == '\0'))
		i++;
	return i;
}

static size_t find_name(const struct opt_def *defs, const char *name, size_t n)
{
	size_t i = 0;

	while (defs[i].name && (strlen(defs[i].name) != n || strncmp(defs[i].name, name, n) != 0))
		i++;
	return i;
}

static int take_value(struct opts *o, size_t row, const char *value, struct err *err)
{
	const struct opt_def *def = &o->defs[row];

	assert(row < OPT_MAX_DEFS);
	if (o->values[row].n > 0 && def->arg && !def->many)
		return err_set(err, -EINVAL, "duplicate option --%s", def->name);
	opt_list_add(&o->values[row], value);
	return 0;
}

/* Gives the count of arguments used up, 1 or 2. */
static int parse_long(struct opts *o, char **argv, struct err *err)
{
	const char *name = argv[0] + 2, *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name), row = find_name(o->defs, name, n);
	const struct opt_def *def = &o->defs[row];
	int r;

	if (!def->name) {
		const char *known[OPT_MAX_DEFS + 1] = {NULL}, *near;
		AUTO_FREE char *typed = xstrndup(name, n);

		for (size_t i = 0; o->defs[i].name; i++)
			known[i] = o->defs[i].name;
		near = opt_nearest(typed, known);
		return near ? err_set(err, -EINVAL, "unknown option --%s: did you mean --%s?",
				      typed, near)
			    : err_set(err, -EINVAL, "unknown option --%s", typed);
	}
	if (!def->arg && eq)
		return err_set(err, -EINVAL, "--%s takes no value", def->name);
	if (def->optional && !eq) {
		r = take_value(o, row, "", err);
		return r < 0 ? r : 1;
	}
	if (def->arg && !eq && !argv[1])
		return err_set(err, -EINVAL, "--%s requires a value: %s", def->name, def->arg);
	r = take_value(o, row, !def->arg ? "" : eq ? eq + 1 : argv[1], err);
	return r < 0 ? r : def->arg && !eq ? 2 : 1;
}

static int parse_cluster(struct opts *o, char **argv, struct err *err)
{
	for (const char *c = argv[0] + 1; *c; c++) {
		size_t row = find_letter(o->defs, *c);
		const struct opt_def *def = &o->defs[row];
		int r;

		if (!def->name)
			return err_set(err, -EINVAL, "unknown option -%c", *c);
		if (!def->arg) {
			r = take_value(o, row, "", err);
			if (r < 0)
				return r;
			continue;
		}
		if (!c[1] && !argv[1])
			return err_set(err, -EINVAL, "-%c requires a value: %s", *c, def->arg);
		r = take_value(o, row, c[1] ? c + 1 + (c[1] == '=') : argv[1], err);
		return r < 0 ? r : c[1] ? 1 : 2;
	}
	return 1;
}

static int parse_one(struct opts *o, char **argv, struct err *err)
{
	if (argv[0][0] == '-' && argv[0][1] == '-')
		return parse_long(o, argv, err);
	if (argv[0][0] == '-' && argv[0][1])
		return parse_cluster(o, argv, err);
	opt_list_add(&o->args, argv[0]);
	return 1;
}

int opt_parse(const struct opt_def *defs, unsigned stop_after, int argc, char **argv,
	struct opts *ret, struct err *err)
{
	*ret = (struct opts){.defs = defs, .argv = argv};
	for (int i = 0; i < argc;) {
		int used = 1;

		if (ret->has_rest)
			opt_list_add(&ret->rest, argv[i]);
		else if (stop_after && ret->args.n >= stop_after)
			opt_list_add(&ret->args, argv[i]);
		else if (strcmp(argv[i], "--") == 0 && !stop_after)
			ret->has_rest = true;
		else if (strcmp(argv[i], "--") == 0)
			stop_after = 1, used = 1; /* from here on only positionals */
		else
			used = parse_one(ret, argv + i, err);
		if (used < 0) {
			opts_done(ret);
			return used;
		}
		i += used;
	}
	return 0;
}

static size_t row_of(const struct opts *o, const char *name)
{
	size_t row = find_name(o->defs, name, strlen(name));

	assert(o->defs[row].name);
	return row;
}

bool opts_has(const struct opts *o, const char *name)
{
	return o->values[row_of(o, name)].n > 0;
}

const char *opts_value(const struct opts *o, const char *name)
{
	const struct opt_list *l = opts_list(o, name);

	return l->n > 0 ? l->v[l->n - 1] : NULL;
}

const struct opt_list *opts_list(const struct opts *o, const char *name)
{
	return &o->values[row_of(o, name)];
}

/* Letters to add, drop, change or swap to get from one word to the other. */
static size_t distance_opt(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), d[32][32];

	if (n >= 32 || m >= 32)
		return SIZE_MAX;
	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = MIN(MIN(d[i - 1][j], d[i][j - 1]) + 1,
				d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

const char *opt_nearest(const char *typed, const char *const *words)
{
	size_t best = 1 + strlen(typed) / 3;
	const char *found = NULL;

	for (; *words; words++) {
		size_t d = distance_opt(typed, *words);

		if (d <= best && (!found || d < best)) {
			best = d;
			found = *words;
		}
	}
	return found;
}
