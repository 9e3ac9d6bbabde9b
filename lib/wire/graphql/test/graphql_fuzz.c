/* SPDX-License-Identifier: Apache-2.0 */
/* A request body, each document in it, all root fields, and arguments with the variables. A text
 * that is not JSON is a document. */
#include <assert.h>
#include "lib/wire/graphql/graphql_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice outer, struct slice inner)
{
	assert(!inner.n || (inner.p >= outer.p && inner.p + inner.n <= outer.p + outer.n));
}

static void find_values(
	const struct graphql *doc, const struct graphql_root *root, struct slice vars)
{
	static const char *const paths[] = {"/x", "/input/title", "/a/b/c/d"};
	uint8_t buf[32];
	struct slice value;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (graphql_find_value(doc, root, slice_from_str(paths[i]), vars, buf, sizeof(buf),
			    &value) == GRAPHQL_KNOWN)
			assert(value.n <= doc->text.n + vars.n);
}

static void parse_call(const struct graphql_call *call)
{
	struct graphql_root roots[GRAPHQL_MAX_ROOTS];
	const struct graphql_op *op = NULL;
	struct graphql doc;
	struct arena arena;
	const char *why = NULL;
	size_t n = 0;

	arena_init(&arena, GRAPHQL_ARENA_SIZE(call->text.n));
	if (graphql_parse(call->text, &arena, &doc, &why) == 0) {
		assert(doc.n_ops > 0 && doc.n_tokens > 2);
		(void)!graphql_select(&doc, call->name, &op);
		for (size_t i = 0; i < doc.n_ops; i++)
			if (graphql_list_roots(&doc, &doc.op[i], roots, &n, &why) < 0)
				assert(why);
		assert(n <= GRAPHQL_MAX_ROOTS);
		for (size_t i = 0; i < n; i++) {
			assert(roots[i].name.n > 0);
			check_inside(call->text, roots[i].name);
			find_values(&doc, &roots[i], call->vars);
		}
	} else {
		assert(why);
	}
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graphql_call calls[GRAPHQL_MAX_CALLS] = {{.text = slice_of(data, size)}};
	struct arena arena;
	const char *why = NULL;
	size_t n = 0;

	arena_init(&arena, size + 256);
	if (graphql_read_body(slice_of(data, size), &arena, calls, &n, &why) == 0)
		for (size_t i = 0; i < n; i++)
			parse_call(&calls[i]);
	else
		assert(why);
	arena_reset(&arena);
	if (graphql_read_query(slice_of(data, size), &arena, &calls[0], &why) == 0)
		parse_call(&calls[0]);
	calls[0] = (struct graphql_call){.text = slice_of(data, size)};
	parse_call(&calls[0]);
	arena_done(&arena);
	return 0;
}
