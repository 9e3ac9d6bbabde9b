/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each rule of the grammar; the tokens are paired already. */
#include <errno.h>
#include "graphql_internal.h"

struct parser {
	struct graphql *doc;
	uint32_t at;
	unsigned depth;
	const char *why;
};

static int fail_parse(struct parser *ps, const char *why)
{
	ps->why = why;
	return -EBADMSG;
}

static uint8_t peek_kind(const struct parser *ps)
{
	return graphql_kind(ps->doc, ps->at);
}

static bool is_word(const struct parser *ps, const char *word)
{
	return peek_kind(ps) == GRAPHQL_NAME && slice_eq_str(graphql_word(ps->doc, ps->at), word);
}

static bool take_if(struct parser *ps, uint8_t kind)
{
	bool is = peek_kind(ps) == kind;

	ps->at += is;
	return is;
}

static int take_kind(struct parser *ps, uint8_t kind)
{
	return take_if(ps, kind) ? 0 : fail_parse(ps, "the document is not valid GraphQL");
}

static int take_name(struct parser *ps, struct slice *ret)
{
	*ret = graphql_word(ps->doc, ps->at);
	return take_kind(ps, GRAPHQL_NAME);
}

static int go_down(struct parser *ps)
{
	return ++ps->depth > GRAPHQL_MAX_DEPTH ? fail_parse(ps, "the document is nested too deep")
					       : 0;
}

/* Each name of a list is there once: servers differ about the second one. */
static int check_once(struct parser *ps, uint32_t open, struct slice name)
{
	uint32_t i = open + 1;

	for (unsigned n = 0; i + 1 < ps->at; n++) {
		if (n == GRAPHQL_MAX_NAMES)
			return fail_parse(ps, "too many arguments or fields in one list");
		if (slice_eq(graphql_word(ps->doc, i), name))
			return fail_parse(ps, "duplicate argument or field");
		i = graphql_skip_value(ps->doc, i + 2);
	}
	return 0;
}

static int parse_value(struct parser *ps, bool is_const);

/* NAME ":" VALUE */
static int parse_pair(struct parser *ps, uint32_t open, bool is_const)
{
	struct slice name;
	int r = take_name(ps, &name);

	if (r == 0) {
		ps->at--;
		r = check_once(ps, open, name);
		ps->at++;
	}
	if (r == 0)
		r = take_kind(ps, ':');
	return r < 0 ? r : parse_value(ps, is_const);
}

static int parse_inner(struct parser *ps, uint8_t close, bool is_const)
{
	uint32_t open = ps->at - 1;
	int r = go_down(ps);

	while (r == 0 && !take_if(ps, close))
		r = close == ']' ? parse_value(ps, is_const) : parse_pair(ps, open, is_const);
	ps->depth--;
	return r;
}

static int parse_value(struct parser *ps, bool is_const)
{
	struct slice name;

	if (take_if(ps, '$'))
		return is_const ? fail_parse(ps, "a variable is not permitted here")
				: take_name(ps, &name);
	if (take_if(ps, '['))
		return parse_inner(ps, ']', is_const);
	if (take_if(ps, '{'))
		return parse_inner(ps, '}', is_const);
	if (take_if(ps, GRAPHQL_NUMBER) || take_if(ps, GRAPHQL_STRING) ||
		take_if(ps, GRAPHQL_BLOCK))
		return 0;
	return take_kind(ps, GRAPHQL_NAME);
}

static int parse_arguments(struct parser *ps, bool is_const)
{
	uint32_t open = ps->at;
	int r = 0;

	if (!take_if(ps, '('))
		return 0;
	do {
		r = parse_pair(ps, open, is_const);
	} while (r == 0 && !take_if(ps, ')'));
	return r;
}

static int parse_directives(struct parser *ps, bool is_const)
{
	struct slice name;
	int r = 0;

	while (r == 0 && take_if(ps, '@')) {
		r = take_name(ps, &name);
		if (r == 0)
			r = parse_arguments(ps, is_const);
	}
	return r;
}

static int parse_set(struct parser *ps);

/* Behind "...": `on NAME {}`, `{}` or the name of a fragment. */
static int parse_spread(struct parser *ps)
{
	bool is_inline = true;
	struct slice name;
	int r = 0;

	if (is_word(ps, "on")) {
		ps->at++;
		r = take_name(ps, &name);
	} else if (peek_kind(ps) == GRAPHQL_NAME) {
		ps->at++;
		is_inline = false;
	}
	if (r == 0)
		r = parse_directives(ps, false);
	return r < 0 || !is_inline ? r : parse_set(ps);
}

static int parse_field(struct parser *ps)
{
	struct slice name;
	int r = take_name(ps, &name);

	if (r == 0 && take_if(ps, ':'))
		r = take_name(ps, &name);
	if (r == 0)
		r = parse_arguments(ps, false);
	if (r == 0)
		r = parse_directives(ps, false);
	return r < 0 || peek_kind(ps) != '{' ? r : parse_set(ps);
}

static int parse_set(struct parser *ps)
{
	int r = go_down(ps);

	if (r == 0)
		r = take_kind(ps, '{');
	do {
		if (r == 0)
			r = take_if(ps, '.') ? parse_spread(ps) : parse_field(ps);
	} while (r == 0 && !take_if(ps, '}'));
	ps->depth--;
	return r;
}

static int parse_type(struct parser *ps)
{
	unsigned lists = 0;
	struct slice name;
	int r;

	while (take_if(ps, '['))
		lists++;
	r = take_name(ps, &name);
	(void)take_if(ps, '!');
	while (r == 0 && lists-- > 0) {
		r = take_kind(ps, ']');
		(void)take_if(ps, '!');
	}
	return r;
}

/* Whether a variable with this name is defined between both tokens. */
static bool is_defined(const struct graphql *doc, uint32_t from, uint32_t to, struct slice name)
{
	for (uint32_t i = from; i + 1 < to; i++)
		if (graphql_kind(doc, i) == '$' && slice_eq(graphql_word(doc, i + 1), name))
			return true;
	return false;
}

static int parse_variables(struct parser *ps, struct graphql_op *op)
{
	unsigned n = 0;
	int r = 0;

	if (peek_kind(ps) != '(')
		return 0;
	op->vars = ps->at++;
	do {
		uint32_t from = ps->at;
		struct slice name = {0};

		r = take_kind(ps, '$');
		if (r == 0)
			r = take_name(ps, &name);
		if (r == 0 && n++ == GRAPHQL_MAX_NAMES)
			r = fail_parse(ps, "too many variables");
		if (r == 0 && is_defined(ps->doc, op->vars, from, name))
			r = fail_parse(ps, "a variable is defined twice");
		if (r == 0)
			r = take_kind(ps, ':');
		if (r == 0)
			r = parse_type(ps);
		if (r == 0 && take_if(ps, '='))
			r = parse_value(ps, true);
		if (r == 0 && peek_kind(ps) == '@') {
			op->has_directives = true;
			r = parse_directives(ps, true);
		}
	} while (r == 0 && !take_if(ps, ')'));
	return r;
}

static int parse_operation(struct parser *ps, enum graphql_type type)
{
	struct graphql *doc = ps->doc;
	struct graphql_op op = {.type = type};
	int r = 0;

	if (peek_kind(ps) != '{') {
		ps->at++;
		if (peek_kind(ps) == GRAPHQL_NAME)
			r = take_name(ps, &op.name);
		if (r == 0)
			r = parse_variables(ps, &op);
		op.has_directives = op.has_directives || peek_kind(ps) == '@';
		if (r == 0)
			r = parse_directives(ps, false);
	}
	for (size_t i = 0; i < doc->n_ops; i++)
		if (op.name.n == 0 || slice_eq(doc->op[i].name, op.name) || doc->op[0].name.n == 0)
			return fail_parse(ps, "two operations have one name, or one has none");
	if (r < 0 || doc->n_ops == GRAPHQL_MAX_OPS)
		return r < 0 ? r : fail_parse(ps, "too many operations");
	op.set = ps->at;
	doc->op[doc->n_ops++] = op;
	return parse_set(ps);
}

static int parse_fragment(struct parser *ps)
{
	struct graphql *doc = ps->doc;
	struct graphql_fragment f = {0};
	struct slice type;
	bool is_named;
	int r;

	ps->at++;
	is_named = !is_word(ps, "on");
	r = take_name(ps, &f.name);
	if (!is_named || (r == 0 && !is_word(ps, "on")))
		return fail_parse(ps, "the document is not valid GraphQL");
	ps->at += r == 0;
	if (r == 0)
		r = take_name(ps, &type);
	f.has_directives = peek_kind(ps) == '@';
	if (r == 0)
		r = parse_directives(ps, false);
	for (size_t i = 0; i < doc->n_fragments; i++)
		if (slice_eq(doc->fragment[i].name, f.name))
			return fail_parse(ps, "two fragments have one name");
	if (r < 0 || doc->n_fragments == GRAPHQL_MAX_FRAGMENTS)
		return r < 0 ? r : fail_parse(ps, "too many fragments");
	f.set = ps->at;
	doc->fragment[doc->n_fragments++] = f;
	return parse_set(ps);
}

static int parse_definition(struct parser *ps)
{
	if (peek_kind(ps) == '{' || is_word(ps, "query"))
		return parse_operation(ps, GRAPHQL_QUERY);
	if (is_word(ps, "mutation"))
		return parse_operation(ps, GRAPHQL_MUTATION);
	if (is_word(ps, "subscription"))
		return parse_operation(ps, GRAPHQL_SUBSCRIPTION);
	if (is_word(ps, "fragment"))
		return parse_fragment(ps);
	return fail_parse(ps, "the document is not valid GraphQL");
}

int graphql_parse(struct slice text, struct arena *arena, struct graphql *ret, const char **ret_why)
{
	struct parser ps = {.doc = ret};
	int r;

	*ret = (struct graphql){.text = text};
	r = graphql_lex(text, arena, ret, ret_why);
	if (r < 0)
		return r;
	while (r == 0 && ps.at < ret->n_tokens)
		r = parse_definition(&ps);
	if (r == 0 && ret->n_ops == 0)
		r = fail_parse(&ps, "the document has no operation");
	*ret_why = ps.why;
	return r;
}
