/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>
#include "effect_internal.h"
#include "effect_query.h"
#include "effect_terms.h"
#include "lib/base/text/star.h"

/* One packed term. */
struct term {
	enum effect_term_kind kind;
	struct slice name, value;
};

static bool next_term(struct slice *packed, struct term *ret, bool *ret_bad)
{
	const uint8_t *p = packed->p;
	size_t n_name, n_value;

	if (packed->n == 0)
		return false;
	if (packed->n < EFFECT_TERM_HEAD || p[0] >= EFFECT_N_TERMS) {
		*ret_bad = true;
		return false;
	}
	n_name = p[1];
	n_value = p[2] | (size_t)p[3] << 8;
	if (packed->n - EFFECT_TERM_HEAD < n_name + n_value) {
		*ret_bad = true;
		return false;
	}
	ret->kind = (enum effect_term_kind)p[0];
	ret->name = slice_of(p + EFFECT_TERM_HEAD, n_name);
	ret->value = slice_of(p + EFFECT_TERM_HEAD + n_name, n_value);
	n_value += EFFECT_TERM_HEAD + n_name;
	*packed = slice_of(p + n_value, packed->n - n_value);
	return true;
}

/* A server may take another case for the same: then the two may match. */
static enum effect_match match_pattern(struct slice pattern, struct slice text)
{
	if (effect_pattern_match(pattern, text, false))
		return EFFECT_MATCHES;
	return effect_pattern_match(pattern, text, true) ? EFFECT_MAY_MATCH : EFFECT_DIFFERS;
}

static enum effect_match match_glob(struct slice glob, struct slice text)
{
	if (star_match(glob, text, false))
		return EFFECT_MATCHES;
	return star_match(glob, text, true) ? EFFECT_MAY_MATCH : EFFECT_DIFFERS;
}

/* ---- one term ---- */

static enum effect_match match_do(const struct effect *e, struct slice word)
{
	if (e->is_unknown)
		return slice_eq_str(word, EFFECT_WORD_UNKNOWN) ? EFFECT_MATCHES : EFFECT_MAY_MATCH;
	if (slice_eq_str(word, EFFECT_WORD_UNKNOWN))
		return EFFECT_DIFFERS;
	if (e->kind != EFFECT_HTTP && slice_eq_str(word, EFFECT_WORD_ANY))
		return EFFECT_MATCHES;
	return match_glob(word, e->verb);
}

static enum effect_match match_found(enum effect_fact found, struct slice glob, struct slice value)
{
	if (found == EFFECT_ABSENT)
		return EFFECT_DIFFERS;
	return found == EFFECT_UNKNOWN ? EFFECT_MAY_MATCH : match_glob(glob, value);
}

static enum effect_match match_query(const struct effect *e, const struct term *t)
{
	uint8_t buf[EFFECT_MAX_VALUE];
	struct slice value = {0};

	if (!e->has_query)
		return EFFECT_DIFFERS;
	return match_found(effect_query_find(e->query, t->name, buf, &value), t->value, value);
}

static enum effect_match match_header(const struct effect *e, const struct term *t)
{
	enum effect_fact found = e->has_headers ? EFFECT_ABSENT : EFFECT_UNKNOWN;
	struct slice value = {0};
	size_t n = 0;

	for (size_t i = 0; i < e->n_headers; i++) {
		if (!slice_eq(e->header[i].name, t->name))
			continue;
		found = n++ ? EFFECT_UNKNOWN : EFFECT_KNOWN;
		value = e->header[i].value;
	}
	return match_found(found, t->value, value);
}

static enum effect_match match_fact(struct slice pattern, struct slice fact, bool is_doubtful)
{
	return fact.n == 0 || is_doubtful ? EFFECT_MAY_MATCH : match_pattern(pattern, fact);
}

static enum effect_match match_term(const struct effect *e, const struct term *t)
{
	bool doubt = e->is_odd || e->cut.n;

	if (e->cut.n && t->kind != EFFECT_TERM_DO)
		return EFFECT_MAY_MATCH;
	switch (t->kind) {
	case EFFECT_TERM_DO:
		return match_do(e, t->value);
	case EFFECT_TERM_PATH:
		return e->no_path ? EFFECT_DIFFERS : match_fact(t->value, e->path, false);
	case EFFECT_TERM_REF:
	case EFFECT_TERM_ON:
		return match_fact(t->value, e->object, doubt);
	case EFFECT_TERM_RISK:
		return e->risk.n == 0 ? EFFECT_MAY_MATCH : match_glob(t->value, e->risk);
	case EFFECT_TERM_QUERY:
		return match_query(e, t);
	case EFFECT_TERM_HEADER:
		return match_header(e, t);
	case EFFECT_N_TERMS:
		break;
	}
	return EFFECT_DIFFERS;
}

/* ---- all of them ---- */

static bool is_for_all(struct slice pattern)
{
	return slice_eq_str(pattern, "**") || slice_eq_str(pattern, "/**");
}

/* An unknown effect is matched for certain only by a rule that names `unknown`. */
static enum effect_match match_target(const struct effect *e, struct slice pattern)
{
	struct slice text = e->kind == EFFECT_HTTP ? e->object : e->target;

	if (is_for_all(pattern))
		return EFFECT_MATCHES;
	return match_fact(pattern, text, e->cut.n || (e->is_odd && e->kind != EFFECT_API));
}

bool effect_terms_have(struct slice packed, enum effect_term_kind kind)
{
	bool bad = false;
	struct term t;

	while (next_term(&packed, &t, &bad))
		if (t.kind == kind)
			return true;
	return bad;
}

/* The best alternative of each list; the worst of all lists. */
enum effect_match effect_terms_match(
	const struct effect *e, struct slice pattern, struct slice packed, bool *ret_bad)
{
	enum effect_match all = match_target(e, pattern), list = EFFECT_DIFFERS;
	bool names_unknown = false;
	struct term t, last = {.kind = EFFECT_N_TERMS};

	while (all != EFFECT_DIFFERS && next_term(&packed, &t, ret_bad)) {
		enum effect_match m = match_term(e, &t);

		if (t.kind != last.kind || t.name.n) {
			all = last.kind == EFFECT_N_TERMS ? all : MIN(all, list);
			list = m;
		} else {
			list = MAX(list, m);
		}
		names_unknown = names_unknown ||
				(t.kind == EFFECT_TERM_DO && e->is_unknown && m == EFFECT_MATCHES);
		last = t;
	}
	if (last.kind != EFFECT_N_TERMS)
		all = MIN(all, list);
	return e->is_unknown && !names_unknown ? MIN(all, EFFECT_MAY_MATCH) : all;
}
