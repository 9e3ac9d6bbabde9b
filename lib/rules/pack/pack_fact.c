/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_fact.h"

#include <strings.h>
#include "lib/base/json/jtext.h"
#include "lib/rules/effect/effect_query.h"

static struct slice cut_until(struct slice *rest, uint8_t sign)
{
	const uint8_t *end = rest->n ? memchr(rest->p, sign, rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	struct slice word = slice_of(rest->p, n);

	*rest = end ? slice_of(end + 1, rest->n - n - 1) : slice_of(NULL, 0);
	return word;
}

bool pack_fact_next_name(struct slice *query, struct slice *ret)
{
	size_t n = 0;

	if (query->n == 0)
		return false;
	while (n < query->n && query->p[n] != '&' && query->p[n] != ';')
		n++;
	*ret = slice_of(query->p, n);
	*ret = cut_until(ret, '=');
	*query = n < query->n ? slice_of(query->p + n + 1, query->n - n - 1) : slice_of(NULL, 0);
	return true;
}

bool pack_fact_is_name(struct slice written, const char *lower)
{
	uint8_t buf[PACK_MAX_VALUE];
	struct slice name;
	size_t n = strlen(lower);

	if (effect_query_decode(written, buf, &name) != EFFECT_KNOWN || name.n < n)
		return false;
	return strncasecmp((const char *)name.p, lower, n) == 0 &&
	       (name.n == n || name.p[n] == '[' || name.p[n] == '\0');
}

static enum pack_fact find_query(
	struct slice query, struct slice at, uint8_t buf[PACK_MAX_VALUE], struct slice *ret)
{
	static const enum pack_fact facts[] = {[EFFECT_ABSENT] = PACK_ABSENT,
		[EFFECT_KNOWN] = PACK_KNOWN,
		[EFFECT_UNKNOWN] = PACK_UNKNOWN};

	return facts[effect_query_find(query, at, buf, ret)];
}

static enum pack_fact find_header(
	const struct http_headers *headers, struct slice at, struct slice *ret)
{
	enum pack_fact found = PACK_ABSENT;

	for (size_t i = 0; headers && i < headers->n; i++) {
		if (!slice_eq(headers->list[i].name, at))
			continue;
		if (found != PACK_ABSENT || headers->list[i].value.n > PACK_MAX_VALUE)
			return PACK_UNKNOWN;
		found = PACK_KNOWN;
		*ret = headers->list[i].value;
	}
	return found;
}

static enum pack_fact take_value(
	const struct jtext_member *m, uint8_t buf[PACK_MAX_VALUE], struct slice *ret)
{
	ssize_t n;

	*ret = m->value;
	if (m->kind == JTEXT_OBJECT || m->kind == JTEXT_ARRAY)
		return PACK_UNKNOWN;
	if (m->kind != JTEXT_STRING)
		return m->value.n <= PACK_MAX_VALUE ? PACK_KNOWN : PACK_UNKNOWN;
	n = jtext_decode(slice_of(m->value.p + 1, m->value.n - 2), buf, PACK_MAX_VALUE);
	*ret = slice_of(buf, n < 0 ? 0 : (size_t)n);
	return n < 0 ? PACK_UNKNOWN : PACK_KNOWN;
}

/* The member of the outer object; unknown if the object has it twice or is not JSON. */
static enum pack_fact find_member(struct slice text, struct slice key, struct jtext_member *ret)
{
	struct jtext_walk w = jtext_begin(text, JTEXT_MAX_DEPTH);
	enum pack_fact found = PACK_ABSENT;
	struct jtext_member m;
	int r;

	while ((r = jtext_next(&w, &m)) == 1) {
		uint8_t buf[PACK_MAX_VALUE];
		ssize_t n;

		if (m.depth != 1)
			continue;
		n = jtext_decode(m.key, buf, sizeof(buf));
		if (n < 0)
			return PACK_UNKNOWN;
		/* Go's decoder takes a name in any case */
		if (effect_query_is_other_case(slice_of(buf, (size_t)n), key))
			return PACK_UNKNOWN;
		if (!slice_eq(slice_of(buf, (size_t)n), key))
			continue;
		if (found != PACK_ABSENT)
			return PACK_UNKNOWN;
		found = PACK_KNOWN;
		*ret = m;
	}
	return r < 0 ? PACK_UNKNOWN : found;
}

/* A pointer goes through objects only. */
static enum pack_fact find_json(
	struct slice text, struct slice at, uint8_t buf[PACK_MAX_VALUE], struct slice *ret)
{
	struct slice rest = slice_of(at.p + 1, at.n - 1);

	for (;;) {
		struct jtext_member m = {0};
		enum pack_fact found = find_member(text, cut_until(&rest, '/'), &m);
		size_t from, end;

		if (found != PACK_KNOWN)
			return found;
		if (!rest.p)
			return take_value(&m, buf, ret);
		if (m.kind != JTEXT_OBJECT)
			return PACK_ABSENT;
		from = (size_t)(m.value.p - text.p);
		end = jtext_end(text, from);
		text = slice_of(text.p + from, end - from);
	}
}

enum pack_fact pack_fact_find(const struct pack_request *req, enum pack_source source,
	struct slice at, uint8_t buf[PACK_MAX_VALUE], struct slice *ret)
{
	*ret = slice_of(NULL, 0);
	if (source == PACK_FROM_QUERY)
		return find_query(req->query, at, buf, ret);
	if (source == PACK_FROM_HEADER)
		return find_header(req->headers, at, ret);
	return req->has_body ? find_json(req->body, at, buf, ret) : PACK_UNKNOWN;
}
