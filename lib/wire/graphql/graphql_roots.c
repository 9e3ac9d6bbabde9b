/* SPDX-License-Identifier: Apache-2.0 */
/* Which operation is executed, and its root fields. The document was parsed: its syntax holds. */
#include <errno.h>
#include "graphql_internal.h"

#define MAX_STACK 64

int graphql_select(const struct graphql *doc, struct slice name, const struct graphql_op **ret)
{
	if (!name.p || (name.n == 0 && doc->n_ops == 1)) {
		*ret = &doc->op[0];
		return doc->n_ops == 1 ? 0 : -ENOENT;
	}
	for (size_t i = 0; i < doc->n_ops; i++)
		if (name.n > 0 && slice_eq(doc->op[i].name, name)) {
			*ret = &doc->op[i];
			return 0;
		}
	return -ENOENT;
}

uint32_t graphql_skip_value(const struct graphql *doc, uint32_t i)
{
	uint8_t kind = graphql_kind(doc, i);

	if (kind == '[' || kind == '{')
		return doc->token[i].pair + 1;
	return i + (kind == '$' ? 2 : 1);
}

/* The first token behind directives. */
static uint32_t skip_directives(const struct graphql *doc, uint32_t i, bool *ret_may_change)
{
	while (graphql_kind(doc, i) == '@') {
		struct slice name = graphql_word(doc, i + 1);

		*ret_may_change = *ret_may_change ||
				  (!slice_eq_str(name, "skip") && !slice_eq_str(name, "include"));
		i += 2;
		if (graphql_kind(doc, i) == '(')
			i = doc->token[i].pair + 1;
	}
	return i;
}

/* Selection sets that are open: the next token of each one. */
struct walk {
	const struct graphql *doc;
	uint32_t stack[MAX_STACK];
	size_t depth;
	bool seen[GRAPHQL_MAX_FRAGMENTS]; /* as in the specification: each one counts once */
	bool may_change;
	const char *why;
};

static int fail_walk(struct walk *w, const char *why)
{
	w->why = why;
	return -EBADMSG;
}

static int push_set(struct walk *w, uint32_t set)
{
	if (w->depth == MAX_STACK)
		return fail_walk(w, "the fragments are nested too deep");
	w->stack[w->depth++] = set + 1;
	return 0;
}

static int push_fragment(struct walk *w, struct slice name)
{
	const struct graphql *doc = w->doc;

	for (size_t i = 0; i < doc->n_fragments; i++) {
		if (!slice_eq(doc->fragment[i].name, name))
			continue;
		w->may_change = w->may_change || doc->fragment[i].has_directives;
		if (w->seen[i])
			return 0;
		w->seen[i] = true;
		return push_set(w, doc->fragment[i].set);
	}
	return fail_walk(w, "a fragment is missing");
}

/* `i` is behind "...". */
static int walk_spread(struct walk *w, uint32_t i)
{
	const struct graphql *doc = w->doc;
	bool is_on =
		graphql_kind(doc, i) == GRAPHQL_NAME && slice_eq_str(graphql_word(doc, i), "on");
	struct slice name = {0};

	if (is_on)
		i += 2;
	else if (graphql_kind(doc, i) == GRAPHQL_NAME)
		name = graphql_word(doc, i++);
	i = skip_directives(doc, i, &w->may_change);
	if (name.n) {
		w->stack[w->depth - 1] = i;
		return push_fragment(w, name);
	}
	w->stack[w->depth - 1] = doc->token[i].pair + 1;
	return push_set(w, i);
}

static void walk_field(struct walk *w, uint32_t i, struct graphql_root *ret)
{
	const struct graphql *doc = w->doc;

	*ret = (struct graphql_root){.name = graphql_word(doc, i++)};
	if (graphql_kind(doc, i) == ':') {
		ret->alias = ret->name;
		ret->name = graphql_word(doc, i + 1);
		i += 2;
	}
	if (graphql_kind(doc, i) == '(') {
		ret->args = i;
		i = doc->token[i].pair + 1;
	}
	i = skip_directives(doc, i, &w->may_change);
	if (graphql_kind(doc, i) == '{')
		i = doc->token[i].pair + 1;
	w->stack[w->depth - 1] = i;
}

static int walk_sets(
	struct walk *w, const struct graphql_op *op, struct graphql_root *roots, size_t *n)
{
	int r = push_set(w, op->set);

	while (r == 0 && w->depth > 0) {
		uint32_t i = w->stack[w->depth - 1];

		if (graphql_kind(w->doc, i) == '}') {
			w->depth--;
		} else if (graphql_kind(w->doc, i) == '.') {
			r = walk_spread(w, i + 1);
		} else if (*n == GRAPHQL_MAX_ROOTS) {
			r = fail_walk(w, "the operation has too many fields");
		} else {
			walk_field(w, i, &roots[*n]);
			roots[(*n)++].op = op;
		}
	}
	return r;
}

/* Which fragments a fragment spreads. */
static void list_spreads(const struct graphql *doc, size_t f, bool ret[GRAPHQL_MAX_FRAGMENTS])
{
	uint32_t set = doc->fragment[f].set;

	for (uint32_t i = set; i < doc->token[set].pair; i++)
		for (size_t k = 0; graphql_kind(doc, i) == '.' && k < doc->n_fragments; k++)
			if (slice_eq(graphql_word(doc, i + 1), doc->fragment[k].name))
				ret[k] = true;
}

static bool is_ready(const bool *spreads, const bool *is_done, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (spreads[k] && !is_done[k])
			return false;
	return true;
}

/* Fragments that contain each other are an error, although each one would count once. A fragment
 * is done if all that it spreads are done. */
static int check_cycles(struct walk *w)
{
	const struct graphql *doc = w->doc;
	bool spreads[GRAPHQL_MAX_FRAGMENTS][GRAPHQL_MAX_FRAGMENTS] = {{false}};
	bool is_done[GRAPHQL_MAX_FRAGMENTS] = {false};
	size_t left = doc->n_fragments, before = left + 1;

	for (size_t f = 0; f < doc->n_fragments; f++)
		list_spreads(doc, f, spreads[f]);
	while (left < before) {
		before = left;
		for (size_t f = 0; f < doc->n_fragments; f++)
			if (!is_done[f] && is_ready(spreads[f], is_done, doc->n_fragments)) {
				is_done[f] = true;
				left--;
			}
	}
	return left ? fail_walk(w, "a fragment contains itself") : 0;
}

int graphql_list_roots(const struct graphql *doc, const struct graphql_op *op,
	struct graphql_root roots[GRAPHQL_MAX_ROOTS], size_t *n, const char **ret_why)
{
	struct walk w = {.doc = doc, .may_change = op->has_directives};
	int r = check_cycles(&w);

	if (r == 0)
		r = walk_sets(&w, op, roots, n);
	if (r == 0 && w.may_change)
		r = fail_walk(&w, "a directive may change what is executed");
	*ret_why = w.why;
	return r;
}
