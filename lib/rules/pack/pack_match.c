/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_match.h"

#include <ctype.h>
#include <strings.h>
#include "lib/base/hex.h"
#include "pack_fact.h"
#include "pack_internal.h"
#include "pack_path.h"

/* ---- texts ---- */

struct text {
	char *p;
	size_t n, size; /* size: without the NUL */
	bool is_cut;
};

static void add_byte(struct text *t, char c)
{
	if (t->n < t->size)
		t->p[t->n++] = c;
	else
		t->is_cut = true;
	t->p[t->n] = '\0';
}

/* An escaped slash of a {name/} as a slash, in upper case as canon_normal_path writes it. */
static size_t add_slash(struct text *t, struct slice s, size_t i)
{
	bool is_slash = i + 2 < s.n && s.p[i + 1] == '2' && s.p[i + 2] == 'F';

	add_byte(t, is_slash ? '/' : '%');
	return is_slash ? i + 2 : i;
}

static void add_path_value(struct text *t, struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '%')
			i = add_slash(t, s, i);
		else
			add_byte(t, (char)s.p[i]);
}

/* Text of a body: what is not printable ASCII is escaped. */
static void add_value(struct text *t, struct slice s)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] >= 0x20 && s.p[i] < 0x7f && s.p[i] != '%') {
			add_byte(t, (char)s.p[i]);
			continue;
		}
		add_byte(t, '%');
		add_byte(t, digits[s.p[i] >> 4]);
		add_byte(t, digits[s.p[i] & 15]);
	}
}

/* What fills the braces of a text. */
struct filler {
	const struct pack_request *req;
	const struct pack_row *row;
	const struct pack_parts *parts;
	bool is_known; /* each name had a value */
};

static void add_shown(struct text *t, struct filler *f, struct slice name)
{
	uint8_t buf[PACK_MAX_VALUE];
	struct slice value = {0};
	enum pack_fact found = PACK_ABSENT;

	if (pack_path_value(&f->row->path, f->parts, name, &value)) {
		add_path_value(t, value);
		return;
	}
	for (size_t i = 0; i < f->row->n_shows; i++) {
		const struct pack_show *show = &f->row->show[i];

		if (!slice_eq(show->name, name))
			continue;
		if (show->source == PACK_FROM_PATH) {
			(void)pack_path_value(&f->row->path, f->parts, show->at, &value);
			add_path_value(t, value);
			return;
		}
		found = pack_fact_find(f->req, show->source, show->at, buf, &value);
	}
	if (found == PACK_KNOWN)
		add_value(t, value);
	else
		add_byte(t, '?');
	f->is_known = f->is_known && found == PACK_KNOWN;
}

static void fill_text(struct text *t, struct filler *f, struct slice from)
{
	for (size_t i = 0; i < from.n; i++) {
		size_t n = 0;

		if (from.p[i] != '{') {
			add_byte(t, (char)from.p[i]);
			continue;
		}
		while (from.p[i + 1 + n] != '}')
			n++;
		add_shown(t, f, slice_of(from.p + i + 1, n));
		i += n + 1;
	}
}

/* ---- rows ---- */

/* In any case, with "-" and "_" as one: gateways turn one into the other. */
static bool is_named(struct slice name, const char *lower)
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

		if (!is_named(h->name, "content-type"))
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
		if (is_named(name, overrides[i]))
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
			(found == PACK_KNOWN && !pack_glob_match(when->glob, value)))
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

static const char *match_row(const struct pack *p, const struct pack_request *req,
	struct pack_parts *parts, const struct pack_row **ret)
{
	if (req->odd & ~(unsigned int)CANON_ODD_CODED_SLASH)
		return "servers may read the path in different ways";
	if (memchr(req->path.p, ';', req->path.n))
		return "servers may cut the path at a semicolon";
	if (has_override_header(req->headers) || has_override_field(req->query) ||
		(p->has_override && slice_eq_str(req->method, "POST") && may_be_form(req)))
		return "the server may use another method than the request";
	if (!pack_path_split(req->path, parts))
		return "the path has too many segments";
	if (has_format(p, req, parts))
		return "the server may read the path without its suffix";
	return pick_row(p, req, parts, ret);
}

static void fold_text(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

static void describe_effect(const struct pack *p, struct filler *f, struct pack_effect *ret)
{
	const struct pack_object *object = &p->object[f->row->object];
	struct text t = {.p = ret->object, .size = PACK_MAX_OBJECT};
	struct text say = {.p = ret->say, .size = PACK_MAX_SAY};

	fill_text(&t, f, object->text);
	if (object->is_folded)
		fold_text(ret->object);
	if (t.is_cut || !f->is_known) {
		ret->why = t.is_cut ? "the object is too long" : "the object is not known";
		return;
	}
	ret->row = f->row;
	fill_text(&say, f, f->row->say);
	if (say.is_cut)
		memcpy(ret->say + PACK_MAX_SAY - 3, "...", 3);
}

void pack_match(const struct pack *p, const struct pack_request *req, struct pack_effect *ret)
{
	struct pack_parts parts UNINITIALIZED;
	const struct pack_row *row = NULL;
	struct filler f = {.req = req, .parts = &parts, .is_known = true};

	ret->row = NULL;
	ret->object[0] = ret->say[0] = '\0';
	ret->why = match_row(p, req, &parts, &row);
	if (ret->why)
		return;
	f.row = row;
	describe_effect(p, &f, ret);
}
