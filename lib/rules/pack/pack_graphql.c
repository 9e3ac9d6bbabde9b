/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_graphql.h"

#include <strings.h>
#include "lib/wire/graphql/graphql_body.h"
#include "pack_describe.h"
#include "pack_internal.h"

/* ---- the request ---- */

/* Exactly one type, and nothing that the server undoes before it reads the JSON. */
static bool is_json(const struct http_headers *headers)
{
	static const struct slice none = {0};
	struct slice type = none;

	for (size_t i = 0; headers && i < headers->n; i++) {
		const struct http_header *h = &headers->list[i];

		if (pack_is_header(h->name, "content-encoding") ||
			(type.p && pack_is_header(h->name, "content-type")))
			return false;
		if (pack_is_header(h->name, "content-type"))
			type = h->value;
	}
	for (size_t i = 0; i < type.n; i++)
		if (type.p[i] == ';') {
			struct slice rest = slice_trim(slice_of(type.p + i + 1, type.n - i - 1));

			if (rest.n != 13 ||
				strncasecmp((const char *)rest.p, "charset=utf-8", 13) != 0)
				return false;
			type = slice_trim(slice_of(type.p, i));
		}
	return type.n == 16 && strncasecmp((const char *)type.p, "application/json", 16) == 0;
}

struct matcher {
	const struct pack *p;
	const struct pack_request *req;
	struct arena arena; /* of the request */
	struct graphql_call calls[GRAPHQL_MAX_CALLS];
	size_t n_calls;
	bool is_get;
	struct pack_effects *ret;
};

/* Servers of one kind take fields of the query of a POST first, others those of the body. */
static const char *read_calls(struct matcher *m)
{
	const struct pack_request *req = m->req;
	const char *why = NULL;

	m->is_get = slice_eq_str(req->method, "GET");
	if (m->is_get) {
		m->n_calls = 1;
		return graphql_read_query(req->query, &m->arena, &m->calls[0], &why) < 0 ? why
											 : NULL;
	}
	if (!slice_eq_str(req->method, "POST") || req->query.n)
		return "a request to GraphQL is a POST without a query, or a GET";
	if (!req->has_body)
		return "the body of the request is not known";
	if (!is_json(req->headers))
		return "the body is not plain JSON by its headers";
	return graphql_read_body(req->body, &m->arena, m->calls, &m->n_calls, &why) < 0 ? why
											: NULL;
}

/* ---- effects ---- */

static struct pack_effect *add_effect(struct matcher *m, const char *why)
{
	struct pack_effect *e = &m->ret->v[MIN(m->ret->n, PACK_MAX_EFFECTS - 1u)];

	if (m->ret->n == PACK_MAX_EFFECTS)
		why = "the request has too many effects";
	else
		m->ret->n++;
	e->row = NULL;
	e->object[0] = e->say[0] = '\0';
	e->why = why;
	return e;
}

const struct pack_row *pack_find_field(const struct pack *p, struct slice type, struct slice name)
{
	const struct pack_row *any = NULL;

	for (size_t i = 0; i < p->n_fields; i++) {
		const struct pack_row *row = &p->field[i];

		if (!slice_eq(row->method, type))
			continue;
		if (slice_eq(row->field, name))
			return row;
		if (slice_eq_str(row->field, "*"))
			any = row;
	}
	return any;
}

static void match_field(struct matcher *m, const struct graphql *doc,
	const struct graphql_root *root, struct slice vars)
{
	static const char *const types[] = {[GRAPHQL_QUERY] = "query",
		[GRAPHQL_MUTATION] = "mutation",
		[GRAPHQL_SUBSCRIPTION] = "subscription"};
	struct pack_filler f = {.doc = doc, .root = root, .vars = vars};
	struct pack_effect *e = add_effect(m, NULL);

	f.row = pack_find_field(m->p, slice_from_str(types[root->op->type]), root->name);
	if (e->why)
		return;
	if (!f.row)
		e->why = "no row matches the field";
	else if (m->is_get && root->op->type != GRAPHQL_QUERY)
		e->why = "a GET is for queries";
	else
		pack_describe(m->p, &f, e);
}

/* All operations count: a server might not execute the one that is named. */
static const char *match_document(
	struct matcher *m, const struct graphql_call *call, struct arena *arena)
{
	struct graphql_root roots[GRAPHQL_MAX_ROOTS];
	const struct graphql_op *op;
	struct graphql doc;
	const char *why = NULL;
	size_t n = 0;

	if (graphql_parse(call->text, arena, &doc, &why) < 0)
		return why;
	if (graphql_select(&doc, call->name, &op) < 0)
		return "the document does not have exactly one operation with the name";
	for (size_t i = 0; i < doc.n_ops; i++)
		if (graphql_list_roots(&doc, &doc.op[i], roots, &n, &why) < 0)
			return why;
	for (size_t i = 0; i < n; i++)
		match_field(m, &doc, &roots[i], call->vars);
	return NULL;
}

static void match_call(struct matcher *m, const struct graphql_call *call)
{
	struct arena arena;
	const char *why;

	arena_init(&arena, GRAPHQL_ARENA_SIZE(MIN(call->text.n, GRAPHQL_MAX_TEXT)));
	why = match_document(m, call, &arena);
	if (why)
		(void)add_effect(m, why);
	arena_done(&arena);
}

static void match_graphql(struct matcher *m)
{
	const char *why = pack_check_request(m->p, m->req);

	arena_init(&m->arena, 2 * (m->req->body.n + m->req->query.n) + 1024);
	if (!why && m->req->odd)
		why = "servers may read the path in different ways";
	if (!why)
		why = read_calls(m);
	if (why)
		(void)add_effect(m, why);
	for (size_t i = 0; !why && i < m->n_calls; i++)
		match_call(m, &m->calls[i]);
	arena_done(&m->arena);
}

void pack_match_all(const struct pack *p, const struct pack_request *req, struct pack_effects *ret)
{
	struct matcher m = {.p = p, .req = req, .ret = ret};

	ret->n = 0;
	if (p->graphql.n && slice_eq(p->graphql, req->path)) {
		match_graphql(&m);
		return;
	}
	pack_match(p, req, &ret->v[0]);
	ret->n = 1;
}
