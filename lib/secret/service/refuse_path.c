/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a path is an endpoint that a service refuses, captures fields of or gets tokens from,
 * for every server that may read it. Runs in sbx-origin and reads the guest's paths; it touches
 * nothing else. Servers disagree about escapes, empty segments, parameters, case and ends of
 * paths. A path is cut at everything that some server takes for the end of a segment, and each
 * pattern is tried with every way to join and to leave out pieces. Only ".." has no such union:
 * what it removes depends on the server. A path with one is refused, and so is one with control
 * characters, which some servers remove. */
#include <strings.h>
#include "lib/base/mem.h"
#include "service_internal.h"
#include "service_match.h"

#define MAX_DECODINGS 4 /* no known chain of servers decodes more often */
#define MAX_ELEMENTS (SERVICE_MAX_TEXT / 2 + 1)

const struct service_refusal service_odd_path = {.rule = (char *)"a disputed path"};

/* ---- escapes ---- */

/* In place. A decoded slash becomes a backslash: either may end a segment or be a letter of one. */
static size_t decode_once(uint8_t *buf, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; to++) {
		uint8_t c = buf[i];
		struct slice one;

		if (c == '%' && n - i >= 3 && service_unescape(slice_of(buf + i, 3), &c, 1, &one)) {
			c = c == '/' ? '\\' : c;
			i += 3;
		} else {
			i++;
		}
		buf[to] = c;
	}
	return to;
}

/* False: there are more escapes of escapes than any server undoes. */
static bool decode_path(uint8_t *buf, size_t *n)
{
	for (unsigned round = 0; round <= MAX_DECODINGS; round++) {
		size_t before = *n;

		*n = decode_once(buf, before);
		if (*n == before)
			return true;
	}
	return false;
}

/* ---- pieces ---- */

/* What is between two bytes that may end a segment. */
struct piece {
	struct slice name; /* without parameters and blanks */
	bool is_empty;
	bool is_odd; /* nothing, blanks, "." or parameters alone: some servers leave it out */
	bool joins;  /* it may belong to the piece before it */
	bool has_parameters;
	bool may_be_host; /* behind "//" some servers read a host: //HOST/user/keys is /user/keys */
	bool ends;	  /* the path may end here */
};

struct pieces {
	const uint8_t *p;
	size_t n, at;
	bool joins, was_odd;
};

static bool ends_path(uint8_t c)
{
	return c == '?' || c == '#';
}

static bool ends_segment(uint8_t c)
{
	return c == '/' || c == '\\' || ends_path(c);
}

static struct pieces pieces_of(const uint8_t *p, size_t n)
{
	return (struct pieces){.p = p, .n = n, .at = n && p[0] == '/'};
}

static bool next_piece(struct pieces *all, struct piece *ret)
{
	size_t from = all->at, end = from;
	const uint8_t *parameters;
	struct slice text;

	if (from > all->n)
		return false;
	while (end < all->n && !ends_segment(all->p[end]))
		end++;
	text = slice_of(all->p + from, end - from);
	parameters = text.n ? memchr(text.p, ';', text.n) : NULL;
	*ret = (struct piece){.is_empty = text.n == 0,
		.joins = all->joins,
		.has_parameters = parameters != NULL,
		.may_be_host = all->was_odd,
		.ends = end == all->n || ends_path(all->p[end])};
	if (parameters)
		text.n = (size_t)(parameters - text.p);
	ret->name = slice_trim(text);
	ret->is_odd = ret->name.n == 0 || slice_eq_str(ret->name, ".");
	all->was_odd = ret->is_odd;
	all->joins = end < all->n && all->p[end] != '/';
	all->at = end + 1;
	return true;
}

/* 0xc0 and 0xc1 begin a letter of ASCII written as two bytes, and nothing else. */
static bool is_disputed_byte(uint8_t c)
{
	return c < ' ' || c == 0x7f || c == 0xc0 || c == 0xc1;
}

static bool is_disputed(const uint8_t *p, size_t n)
{
	struct pieces all = pieces_of(p, n);
	struct piece piece;

	for (size_t i = 0; i < n; i++)
		if (is_disputed_byte(p[i]))
			return true;
	while (next_piece(&all, &piece))
		if (slice_eq_str(piece.name, ".."))
			return true;
	return false;
}

/* ---- patterns ---- */

struct pattern {
	struct slice element[MAX_ELEMENTS];
	size_t n;
};

static void split_path(const char *path, struct pattern *ret)
{
	ret->n = 0;
	for (const char *p = path; *p && p[1] && ret->n < MAX_ELEMENTS;) {
		size_t n = strcspn(p + 1, "/");

		ret->element[ret->n++] = slice_of(p + 1, n);
		p += 1 + n;
	}
}

/* How many elements may have been used up by the pieces so far; and whether a piece that joins
 * can be a part of the last one. */
struct reach {
	bool at[2][MAX_ELEMENTS + 1];
};

static bool is_star(struct slice element)
{
	return slice_eq_str(element, "*") || slice_eq_str(element, "**");
}

static bool is_literal(struct slice element, struct slice name)
{
	return element.n == name.n &&
	       strncasecmp((const char *)element.p, (const char *)name.p, name.n) == 0;
}

/* Frameworks take /keys.json for /keys. */
static struct slice without_extension(struct slice name)
{
	for (size_t i = name.n; i > 0; i--)
		if (name.p[i - 1] == '.')
			return slice_of(name.p, i - 1);
	return name;
}

static bool fits_path(const struct pattern *pt, size_t i, const struct piece *piece)
{
	struct slice element = pt->element[i];

	/* at the end an empty piece is the slash of a list, /functions/, and not a name in it */
	if (is_star(element))
		return !piece->is_empty || piece->joins || i + 1 < pt->n;
	return is_literal(element, piece->name) ||
	       (i + 1 == pt->n && is_literal(element, without_extension(piece->name)));
}

static void step_from(const struct pattern *pt, size_t i, bool is_open, const struct piece *piece,
	struct reach *ret)
{
	if ((is_open && piece->joins) || (i > 0 && slice_eq_str(pt->element[i - 1], "**")))
		ret->at[1][i] = true;
	if (i == 0 && piece->may_be_host)
		ret->at[1][0] = true;
	if (piece->is_odd)
		ret->at[piece->has_parameters][i] = true;
	if (i < pt->n && fits_path(pt, i, piece))
		ret->at[piece->has_parameters || is_star(pt->element[i])][i + 1] = true;
}

/* False: no element is in reach any more. */
static bool step_path(const struct pattern *pt, struct reach *reach, const struct piece *piece)
{
	struct reach next;
	bool any = false;

	for (size_t i = 0; i <= pt->n; i++)
		next.at[0][i] = next.at[1][i] = false;
	for (size_t i = 0; i <= pt->n; i++)
		for (unsigned open = 0; open < 2; open++)
			if (reach->at[open][i]) {
				step_from(pt, i, open, piece, &next);
				any = true;
			}
	*reach = next;
	return any;
}

static bool matches_path(const char *path, const uint8_t *p, size_t n)
{
	static struct pattern pt; /* large */
	struct pieces all = pieces_of(p, n);
	struct reach reach = {.at = {{true}}};
	struct piece piece;

	split_path(path, &pt);
	while (next_piece(&all, &piece)) {
		if (!step_path(&pt, &reach, &piece))
			return false;
		if (piece.ends && (reach.at[0][pt.n] || reach.at[1][pt.n]))
			return true;
	}
	return false;
}

/* NULL: every method. */
static bool fits_method(const char *want, struct slice method)
{
	return !want || method.n == 0 || service_is_word(method, want);
}

static bool has_path_rule(const struct service *s)
{
	for (size_t i = 0; i < s->n_refusals; i++)
		if (s->refusal[i].path)
			return true;
	return s->n_captures > 0;
}

bool service_names_paths(const struct service *s)
{
	return has_path_rule(s) || s->n_endpoints > 0;
}

/* The path without escapes, on the heap; NULL: it is disputed. */
static uint8_t *read_path(struct slice path, size_t *ret_n)
{
	AUTO_FREE uint8_t *buf = xmalloc(path.n);

	memcpy(buf, path.p, path.n);
	*ret_n = path.n;
	return decode_path(buf, ret_n) && !is_disputed(buf, *ret_n) ? TAKE(buf) : NULL;
}

const struct service_refusal *service_refuses_path(
	const struct service *s, struct slice method, struct slice path)
{
	AUTO_FREE uint8_t *buf = NULL;
	size_t n;

	if (path.n == 0 || !has_path_rule(s))
		return NULL;
	buf = read_path(path, &n);
	if (!buf)
		return &service_odd_path;
	for (size_t i = 0; i < s->n_refusals; i++) {
		const struct service_refusal *r = &s->refusal[i];

		if (r->path && fits_method(r->method, method) && matches_path(r->path, buf, n))
			return r;
	}
	return NULL;
}

uint32_t service_captures(const struct service *s, struct slice method, struct slice path)
{
	AUTO_FREE uint8_t *buf = NULL;
	uint32_t found = 0;
	size_t n;

	if (s->n_captures == 0 || path.n == 0)
		return 0;
	buf = read_path(path, &n);
	for (size_t i = 0; i < s->n_captures; i++) {
		const struct service_capture *c = &s->capture[i];

		if (!buf || (fits_method(c->method, method) && matches_path(c->path, buf, n)))
			found |= UINT32_C(1) << i;
	}
	return found;
}

bool service_may_be_endpoint(const struct service *s, const struct service_request *req)
{
	AUTO_FREE uint8_t *buf = NULL;
	size_t n;

	if (req->path.n == 0 || !service_is_endpoint_host(s, req))
		return false;
	buf = read_path(req->path, &n);
	for (size_t i = 0; buf && i < s->n_endpoints; i++)
		if (matches_path(s->endpoint[i].path, buf, n))
			return true;
	return !buf;
}
