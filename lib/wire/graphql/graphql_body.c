/* SPDX-License-Identifier: Apache-2.0 */
#include "graphql_body.h"

#include <errno.h>
#include <strings.h>
#include "lib/base/hex.h"
#include "lib/base/json/jtext.h"

enum part { PART_QUERY, PART_NAME, PART_VARS, PART_EXTENSIONS, N_PARTS };

static const char *const parts[N_PARTS] = {"query", "operationName", "variables", "extensions"};

struct reader {
	struct arena *arena;
	struct graphql_call *call;
	bool seen[N_PARTS];
	const char *why;
};

static int fail_read(struct reader *rd, const char *why)
{
	rd->why = why;
	return -EBADMSG;
}

static enum part find_part(struct slice name)
{
	enum part i = 0;

	while (i < N_PARTS && !slice_eq_str(name, parts[i]))
		i++;
	return i;
}

static bool is_null(const struct jtext_member *m)
{
	return m->kind == JTEXT_LITERAL && slice_eq_str(m->value, "null");
}

/* Into the arena: the text may have escapes. */
static int take_text(struct reader *rd, const struct jtext_member *m, struct slice *ret)
{
	size_t room = m->kind == JTEXT_STRING ? m->value.n - 2 : 0;
	uint8_t *p = m->kind == JTEXT_STRING ? arena_alloc(rd->arena, room + 1) : NULL;
	ssize_t n = p ? jtext_decode(slice_of(m->value.p + 1, room), p, room) : -EBADMSG;

	if (n < 0)
		return fail_read(
			rd, "query and operationName must be strings of a moderate length");
	*ret = slice_of(p, (size_t)n);
	return 0;
}

/* From the opening bracket to the closing one. */
static struct slice whole_value(struct slice text, const struct jtext_member *m)
{
	size_t from = (size_t)(m->value.p - text.p);

	return slice_of(text.p + from, jtext_end(text, from) - from);
}

static bool is_stored_name(struct slice name)
{
	static const char *const names[] = {"persistedQuery", "documentId", "queryId"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (name.n == strlen(names[i]) &&
			strncasecmp((const char *)name.p, names[i], name.n) == 0)
			return true;
	return false;
}

/* With a persisted query, the server may execute a document that it has stored. */
static int check_extensions(struct reader *rd, struct slice text)
{
	struct jtext_walk w = jtext_begin(text, JTEXT_MAX_DEPTH);
	struct jtext_member m;

	while (jtext_next(&w, &m) == 1) {
		uint8_t buf[64];
		ssize_t n = jtext_decode(m.key, buf, sizeof(buf));

		if (n < 0 || is_stored_name(slice_of(buf, (size_t)n)))
			return fail_read(
				rd, "the server may execute a document that it has stored");
	}
	return 0;
}

static int take_part(
	struct reader *rd, enum part part, struct slice text, const struct jtext_member *m)
{
	if (part == PART_QUERY)
		return take_text(rd, m, &rd->call->text);
	if (is_null(m))
		return 0;
	if (part == PART_NAME)
		return take_text(rd, m, &rd->call->name);
	if (m->kind != JTEXT_OBJECT)
		return fail_read(rd, "variables and extensions must be objects");
	if (part == PART_EXTENSIONS)
		return check_extensions(rd, whole_value(text, m));
	rd->call->vars = whole_value(text, m);
	return 0;
}

static int take_member(struct reader *rd, struct slice text, const struct jtext_member *m)
{
	uint8_t buf[64];
	ssize_t n = jtext_decode(m->key, buf, sizeof(buf));
	enum part part = n < 0 ? N_PARTS : find_part(slice_of(buf, (size_t)n));

	if (part == N_PARTS)
		return fail_read(rd, "the request has a member that is not known");
	if (rd->seen[part])
		return fail_read(rd, "the request has a member twice");
	rd->seen[part] = true;
	return take_part(rd, part, text, m);
}

static int read_call(struct reader *rd, struct slice text)
{
	struct jtext_walk w = jtext_begin(text, JTEXT_MAX_DEPTH);
	struct jtext_member m;
	int r = 0, more;

	*rd->call = (struct graphql_call){0};
	memset(rd->seen, 0, sizeof(rd->seen));
	while (r == 0 && (more = jtext_next(&w, &m)) != 0) {
		if (more < 0)
			return fail_read(rd, "the body is not a JSON object");
		if (m.depth == 1)
			r = take_member(rd, text, &m);
	}
	if (r == 0 && !rd->seen[PART_QUERY])
		r = fail_read(rd, "the request has no document");
	return r;
}

static int check_json(struct reader *rd, struct slice body)
{
	struct jtext_walk w = jtext_begin(body, JTEXT_MAX_DEPTH);
	struct jtext_member m;
	int r;

	if (body.n > GRAPHQL_MAX_BODY)
		return fail_read(rd, "the body is too long");
	w.takes_array = true;
	while ((r = jtext_next(&w, &m)) == 1) {
	}
	return r < 0 ? fail_read(rd, "the body is not JSON") : 0;
}

/* The text is JSON: an array ends, and its values are separated by commas. */
static int read_batch(struct reader *rd, struct slice body, size_t at, size_t *n)
{
	struct graphql_call *calls = rd->call;
	int r = 0;

	at = jtext_skip(body, at + 1);
	while (r == 0 && body.p[at] != ']') {
		size_t end = jtext_end(body, at);

		if (*n == GRAPHQL_MAX_CALLS || end == 0)
			return fail_read(rd, "the batch has too many requests");
		rd->call = &calls[(*n)++];
		r = read_call(rd, slice_of(body.p + at, end - at));
		at = jtext_skip(body, end);
		if (body.p[at] == ',')
			at = jtext_skip(body, at + 1);
	}
	return r < 0 || *n > 0 ? r : fail_read(rd, "the batch is empty");
}

int graphql_read_body(struct slice body, struct arena *arena,
	struct graphql_call calls[GRAPHQL_MAX_CALLS], size_t *ret_n, const char **ret_why)
{
	struct reader rd = {.arena = arena, .call = calls};
	size_t at = jtext_skip(body, 0);
	int r = check_json(&rd, body);

	*ret_n = 0;
	if (r == 0 && body.p[at] == '[') {
		r = read_batch(&rd, body, at, ret_n);
	} else if (r == 0) {
		*ret_n = 1;
		r = read_call(&rd, body);
	}
	*ret_why = rd.why;
	return r;
}

/* ---- GET ---- */

static struct slice cut_until(struct slice *rest, uint8_t sign)
{
	const uint8_t *end = rest->n ? memchr(rest->p, sign, rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	struct slice word = slice_of(rest->p, n);

	*rest = end ? slice_of(end + 1, rest->n - n - 1) : slice_of(NULL, 0);
	return word;
}

static int decode_field(struct reader *rd, struct slice raw, struct slice *ret)
{
	uint8_t *p = arena_alloc(rd->arena, raw.n + 1);
	size_t n = 0;

	for (size_t i = 0; p && i < raw.n; i++) {
		int c = raw.p[i] == '+' ? ' ' : raw.p[i];

		if (c == '%') {
			int hi = i + 2 < raw.n ? hex_digit(raw.p[i + 1]) : -1;
			int lo = i + 2 < raw.n ? hex_digit(raw.p[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return fail_read(rd, "the query has an invalid escape");
			c = hi << 4 | lo;
			i += 2;
		}
		p[n++] = (uint8_t)c;
	}
	*ret = slice_of(p, n);
	return p ? 0 : fail_read(rd, "the query is too long");
}

static int take_field(struct reader *rd, struct slice name, struct slice raw)
{
	struct slice text = {0};
	enum part part = find_part(name);
	int r = 0;

	if (part == N_PARTS)
		return fail_read(rd, "the request has a field that is not known");
	if (rd->seen[part])
		return fail_read(rd, "the request has a field twice");
	rd->seen[part] = true;
	r = decode_field(rd, raw, &text);
	if (r == 0 && part == PART_QUERY)
		rd->call->text = text;
	if (r == 0 && part == PART_NAME)
		rd->call->name = text;
	if (r == 0 && part == PART_VARS)
		rd->call->vars = text;
	if (r == 0 && part == PART_EXTENSIONS)
		r = fail_read(rd, "a GET with extensions may be a persisted query");
	return r;
}

int graphql_read_query(
	struct slice query, struct arena *arena, struct graphql_call *ret, const char **ret_why)
{
	struct reader rd = {.arena = arena, .call = ret};
	int r = 0;

	*ret = (struct graphql_call){0};
	if (query.n && memchr(query.p, ';', query.n))
		r = fail_read(&rd, "servers may split the query at a semicolon");
	while (r == 0 && query.n) {
		struct slice field = cut_until(&query, '&'), name = cut_until(&field, '=');

		r = take_field(&rd, name, field);
	}
	if (r == 0 && !rd.seen[PART_QUERY])
		r = fail_read(&rd, "the request has no document");
	*ret_why = rd.why;
	return r;
}
