/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "pack_internal.h"
#include "pack_graphql.h"
#include "pack_path.h"

#define PRINT(s) (int)(s).n, (s).p

/* ---- precision ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct pack_row *x = a, *y = b;
	int r = memcmp(x->method.p, y->method.p, MIN(x->method.n, y->method.n));

	if (r == 0)
		r = (x->method.n > y->method.n) - (x->method.n < y->method.n);
	if (r == 0)
		r = pack_path_order(&x->path, &y->path);
	if (r == 0)
		r = (x->n_whens < y->n_whens) - (x->n_whens > y->n_whens);
	return r ? r : (x->line > y->line) - (x->line < y->line);
}

/* Whether both can hold: different facts, or one fact that both patterns match. */
static bool can_both_hold(const struct pack_row *a, const struct pack_row *b)
{
	for (size_t i = 0; i < a->n_whens; i++)
		for (size_t k = 0; k < b->n_whens; k++) {
			const struct pack_when *x = &a->when[i], *y = &b->when[k];

			if (x->source == y->source && slice_eq(x->at, y->at) &&
				!pack_glob_meets(x->glob, y->glob))
				return false;
		}
	return true;
}

static bool are_rivals(const struct pack_row *a, const struct pack_row *b)
{
	bool in_b, in_a;

	if (!pack_path_meets(&a->path, &b->path))
		return false;
	in_b = pack_path_is_within(&a->path, &b->path);
	in_a = pack_path_is_within(&b->path, &a->path);
	if (in_a != in_b)
		return false; /* one of them is more precise */
	return !in_a || (a->n_whens == b->n_whens && can_both_hold(a, b));
}

int pack_sort_rows(struct pack *p, struct err *err)
{
	qsort(p->row, p->n_rows, sizeof(*p->row), compare_rows);
	for (size_t i = 0; i < p->n_rows; i++)
		for (size_t k = i + 1;
			k < p->n_rows && slice_eq(p->row[i].method, p->row[k].method); k++) {
			const struct pack_row *a = &p->row[i], *b = &p->row[k];

			if (are_rivals(a, b))
				return err_set(err, -EINVAL,
					"lines %u and %u: one request can match both rows, and neither is more precise",
					MIN(a->line, b->line), MAX(a->line, b->line));
		}
	return 0;
}

/* ---- cases ---- */

struct run {
	const struct pack *p;
	struct arena arena;
	bool *hit, *near; /* of each row */
	bool *field_hit, *field_near;
	struct http_header header[2];
	struct http_headers headers;
};

static void run_done(struct run *run)
{
	arena_done(&run->arena);
	free(run->hit);
	free(run->near);
	free(run->field_hit);
	free(run->field_near);
}

static int read_target(struct run *run, const struct pack_case *c, struct pack_request *ret)
{
	const uint8_t *mark = memchr(c->target.p, '?', c->target.n);
	size_t n = mark ? (size_t)(mark - c->target.p) : c->target.n;
	struct slice path = slice_of(c->target.p, n);

	*ret = (struct pack_request){.method = c->method,
		.body = c->body,
		.has_body = c->has_body,
		.no_body = !c->has_body && !slice_eq_str(c->header, "content-type")};
	run->headers = (struct http_headers){.list = run->header, .max = 2};
	if (c->header.n)
		run->header[run->headers.n++] =
			(struct http_header){.name = c->header, .value = c->value};
	if (c->has_body && !slice_eq_str(c->header, "content-type"))
		run->header[run->headers.n++] = (struct http_header){
			slice_from_str("content-type"), slice_from_str("application/json")};
	ret->headers = &run->headers;
	if (mark)
		ret->query = slice_of(mark + 1, c->target.n - n - 1);
	arena_reset(&run->arena);
	if (canon_check_query(ret->query) < 0)
		return -EINVAL;
	return canon_normal_path(path, &run->arena, &ret->path, &ret->odd);
}

/* A row is nearly reached: by the same path with another method, or by a path that differs from it
 * in one segment or in its length by one. */
static bool is_near(const struct pack_row *row, struct slice method, const struct pack_parts *parts)
{
	struct pack_parts other UNINITIALIZED;
	bool exact;
	size_t n_literals = 0, n_differ = 0;

	if (pack_path_match(&row->path, parts, &exact))
		return true;
	if (!slice_eq(row->method, method))
		return false;
	other = *parts;
	other.n--; /* one segment more than the row */
	if (parts->n > 1 && pack_path_match(&row->path, &other, &exact))
		return true;
	for (size_t i = 0; i < row->path.n; i++) {
		n_literals += row->path.seg[i].kind == PACK_LITERAL;
		n_differ += row->path.seg[i].kind == PACK_LITERAL &&
			    (i >= parts->n || !slice_eq(parts->v[i], row->path.seg[i].text));
	}
	return n_literals > 0 && n_differ <= 1 && row->path.many == row->path.n &&
	       parts->n + 1 >= row->path.n && parts->n <= row->path.n + 1;
}

static void mark_rows(struct run *run, const struct pack_case *c, const struct pack_row *hit,
	const struct pack_parts *parts)
{
	for (size_t i = 0; i < run->p->n_rows; i++) {
		const struct pack_row *row = &run->p->row[i];

		if (row == hit)
			run->hit[i] = true;
		else if (!run->near[i])
			run->near[i] = is_near(row, c->method, parts);
	}
}

/* A case with other fields is a near miss of a field. */
static void mark_fields(struct run *run, const struct pack_effects *effects)
{
	for (size_t i = 0; i < run->p->n_fields; i++) {
		bool is_hit = false;

		for (size_t k = 0; k < effects->n; k++)
			is_hit = is_hit || effects->v[k].row == &run->p->field[i];
		run->field_hit[i] = run->field_hit[i] || is_hit;
		run->field_near[i] = run->field_near[i] || !is_hit;
	}
}

/* RISK VERB OBJECT or unknown, with a semicolon between two. */
static char *effects_text(const struct pack_effects *effects)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < effects->n; i++) {
		const struct pack_effect *e = &effects->v[i];
		AUTO_FREE char *old = text;

		text = e->row ? xasprintf("%s%s%s %.*s %s", old, i ? "; " : "",
					pack_risk_name(e->row->risk), PRINT(e->row->verb),
					e->object)
			      : xasprintf("%s%sunknown", old, i ? "; " : "");
	}
	return text;
}

static int run_case(struct run *run, const struct pack_case *c, struct err *err)
{
	struct pack_request req;
	struct pack_effects effects UNINITIALIZED;
	struct pack_parts parts UNINITIALIZED;
	AUTO_FREE char *text = NULL;

	if (read_target(run, c, &req) < 0)
		return err_set(
			err, -EINVAL, "line %u: invalid target '%.*s'", c->line, PRINT(c->target));
	pack_match_all(run->p, &req, &effects);
	text = effects_text(&effects);
	if (!slice_eq_str(c->effect, text))
		return err_set(err, -EINVAL, "line %u: the case expects '%.*s', the pack has '%s'",
			c->line, PRINT(c->effect), text);
	if (run->p->graphql.n && slice_eq(run->p->graphql, req.path))
		mark_fields(run, &effects);
	else if (pack_path_split(req.path, &parts))
		mark_rows(run, c, effects.v[0].row, &parts);
	return 0;
}

/* The first line of the file is reported: the rows are sorted by precision. */
static int check_rows(const struct run *run, struct err *err)
{
	const struct pack_row *worst = NULL;
	bool is_hit = false;

	for (size_t i = 0; i < run->p->n_rows; i++) {
		const struct pack_row *row = &run->p->row[i];

		if ((run->hit[i] && run->near[i]) || (worst && worst->line < row->line))
			continue;
		worst = row;
		is_hit = run->hit[i];
	}
	for (size_t i = 0; !worst && i < run->p->n_fields; i++)
		if (!run->field_hit[i] || !run->field_near[i]) {
			worst = &run->p->field[i];
			is_hit = run->field_hit[i];
		}
	return worst ? err_set(err, -EINVAL, "line %u: the row has no %s", worst->line,
			       is_hit ? "near miss, a case with another method or segment"
				      : "case that reaches it")
		     : 0;
}

int pack_run_cases(const struct pack *p, struct err *err)
{
	CLEANUP(run_done)
	struct run run = {.p = p,
		.hit = xcalloc(p->n_rows, sizeof(bool)),
		.near = xcalloc(p->n_rows, sizeof(bool)),
		.field_hit = xcalloc(p->n_fields + 1, sizeof(bool)),
		.field_near = xcalloc(p->n_fields + 1, sizeof(bool))};
	int r = 0;

	arena_init(&run.arena, PACK_MAX_LINE);
	for (size_t i = 0; r == 0 && i < p->n_cases; i++)
		r = run_case(&run, &p->cases[i], err);
	return r < 0 ? r : check_rows(&run, err);
}
