/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_match.h"

#include <ctype.h>
#include <strings.h>
#include "pack_describe.h"
#include "pack_fact.h"
#include "pack_internal.h"
#include "pack_path.h"
#include "lib/base/text/star.h"

/* ---- rows ---- */

bool pack_is_header(struct slice name, const char *lower)
{
	bool same = name.n == strlen(lower);

	for (size_t i = 0; same && i < name.n; i++)
		same = tolower(name.p[i]) == lower[i] ||
		       ((name.p[i] == '_' || name.p[i] == '-') &&
			       (lower[i] == '_' || lower[i] == '-'));
	return same;
}

static bool begins_with(struct slice s, const char *word)
{
	return s.n >= strlen(word) && strncasecmp((const char *)s.p, word, strlen(word)) == 0;
}

/* Frameworks parse a body without a type, or with two, as a form too. */
static bool may_be_form(const struct pack_request *req)
{
	size_t n = 0;

	if (req->no_body)
		return false;
	for (size_t i = 0; req->headers && i < req->headers->n; i++) {
		const struct http_header *h = &req->headers->list[i];

		if (!pack_is_header(h->name, "content-type"))
			continue;
		n++;
		if (begins_with(h->value, "application/x-www-form-urlencoded") ||
			begins_with(h->value, "multipart/"))
			return true;
	}
	return n != 1;
}

/* Servers may take the method or the path from one of these, in the query the method. */
static const char *const overrides[] = {"_method", "x-http-method-override", "x-http-method",
	"x-method-override", "x-original-method", "x-original-url", "x-rewrite-url"};

static bool is_override(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(overrides); i++)
		if (pack_is_header(name, overrides[i]))
			return true;
	return false;
}

static bool has_override_header(const struct http_headers *headers)
{
	for (size_t i = 0; headers && i < headers->n; i++)
		if (is_override(headers->list[i].name))
			return true;
	return false;
}

static bool has_override_field(struct slice query)
{
	struct slice name;

	while (pack_fact_next_name(&query, &name))
		for (size_t i = 0; i < ARRAY_LEN(overrides); i++)
			if (pack_fact_is_name(name, overrides[i]))
				return true;
	return false;
}

/* 1: each condition holds, 0: one does not, -1: not known. */
static int check_whens(const struct pack_row *row, const struct pack_request *req)
{
	int all = 1;

	for (size_t i = 0; i < row->n_whens; i++) {
		const struct pack_when *when = &row->when[i];
		uint8_t buf[PACK_MAX_VALUE];
		struct slice value;
		enum pack_fact found = pack_fact_find(req, when->source, when->at, buf, &value);

		if (found == PACK_ABSENT ||
			(found == PACK_KNOWN && !star_match(when->glob, value, false)))
			return 0;
		if (found == PACK_UNKNOWN)
			all = -1;
	}
	return all;
}

static int compare_method(const struct pack_row *row, struct slice method)
{
	int r = memcmp(row->method.p, method.p, MIN(row->method.n, method.n));

	return r ? r : (row->method.n > method.n) - (row->method.n < method.n);
}

/* The rows of a method are next to each other: those of a length, then those with a PACK_MANY. */
static size_t find_first(const struct pack *p, struct slice method, bool many, size_t n)
{
	size_t from = 0, to = p->n_rows;

	while (from < to) {
		size_t at = from + (to - from) / 2;
		const struct pack_path *path = &p->row[at].path;
		int r = compare_method(&p->row[at], method);
		bool has_many = path->many < path->n;

		if (r < 0 || (r == 0 && (has_many < many || (!many && !has_many && path->n < n))))
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static bool is_in_group(const struct pack_row *row, struct slice method, bool many, size_t n)
{
	bool has_many = row->path.many < row->path.n;

	return slice_eq(row->method, method) && has_many == many && (many || row->path.n == n);
}

static const char no_row[] = "no row matches the request";

static const char *pick_row(const struct pack *p, const struct pack_request *req,
	const struct pack_parts *parts, const struct pack_row **ret)
{
	bool is_head = slice_eq_str(req->method, "HEAD"), exact;
	struct slice method = is_head ? slice_from_str("GET") : req->method;

	for (int many = 0; many <= 1; many++)
		for (size_t i = find_first(p, method, many, parts->n);
			i < p->n_rows && is_in_group(&p->row[i], method, many, parts->n); i++) {
			const struct pack_row *row = &p->row[i];
			int holds = pack_path_match(&row->path, parts, &exact)
					    ? check_whens(row, req)
					    : 0;

			if (holds && !exact)
				return "the path has another case than the API";
			if (holds < 0)
				return "a condition of the row cannot be decided";
			if (holds) {
				*ret = row;
				return NULL;
			}
		}
	return no_row;
}

/* Servers may take the end of the last segment as a format: tokens.json is tokens. */
static bool has_format(
	const struct pack *p, const struct pack_request *req, const struct pack_parts *parts)
{
	struct pack_parts bare UNINITIALIZED;
	const struct pack_row *row = NULL;
	const struct slice last = parts->v[parts->n - 1];
	const uint8_t *dot = last.n ? memrchr(last.p, '.', last.n) : NULL;
	const char *why;

	if (!dot || dot == last.p)
		return false;
	bare = *parts;
	bare.v[bare.n - 1] = slice_of(last.p, (size_t)(dot - last.p));
	why = pick_row(p, req, &bare, &row);
	/* a row whose conditions hold, or one of which that is not known */
	return row ? row->path.seg[row->path.n - 1].kind == PACK_LITERAL : why != no_row;
}

const char *pack_check_request(const struct pack *p, const struct pack_request *req)
{
	if (req->odd & ~(unsigned int)CANON_ODD_CODED_SLASH)
		return "servers may read the path in different ways";
	if (memchr(req->path.p, ';', req->path.n))
		return "servers may cut the path at a semicolon";
	if (has_override_header(req->headers) || has_override_field(req->query) ||
		(p->has_override && slice_eq_str(req->method, "POST") && may_be_form(req)))
		return "the server may use another method than the request";
	return NULL;
}

static const char *match_row(const struct pack *p, const struct pack_request *req,
	struct pack_parts *parts, const struct pack_row **ret)
{
	const char *why = pack_check_request(p, req);

	if (why)
		return why;
	if (p->graphql.n && slice_eq(p->graphql, req->path))
		return "what a request to GraphQL does is in its body";
	if (!pack_path_split(req->path, parts))
		return "the path has too many segments";
	if (has_format(p, req, parts))
		return "the server may read the path without its suffix";
	return pick_row(p, req, parts, ret);
}

void pack_match(const struct pack *p, const struct pack_request *req, struct pack_effect *ret)
{
	struct pack_parts parts UNINITIALIZED;
	const struct pack_row *row = NULL;
	struct pack_filler f = {.req = req, .parts = &parts};

	ret->row = NULL;
	ret->object[0] = ret->say[0] = '\0';
	ret->why = match_row(p, req, &parts, &row);
	if (ret->why)
		return;
	f.row = row;
	pack_describe(p, &f, ret);
}
