/* SPDX-License-Identifier: Apache-2.0 */
/* What the library finds in documents, for graphql_oracle.py. Each line of stdin is the hex form of
 * a document, a blank, and that of the JSON of its variables. Each line of stdout is "no", or the
 * operations with their root fields and arguments. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/wire/graphql/graphql_internal.h"

static struct slice read_hex(const char **at)
{
	size_t n = strspn(*at, "0123456789abcdef");
	uint8_t *p = xmalloc(n / 2 + 1);

	for (size_t i = 0; i + 1 < n; i += 2)
		p[i / 2] = (uint8_t)(hex_digit((uint8_t)(*at)[i]) << 4 |
				     hex_digit((uint8_t)(*at)[i + 1]));
	*at += n + ((*at)[n] == ' ');
	return slice_of(p, n / 2);
}

static void print_word(struct slice s)
{
	printf("%.*s", (int)s.n, s.p);
}

/* The value of each argument; objects only as a whole, which is unknown. */
static void print_arguments(
	const struct graphql *doc, const struct graphql_root *root, struct slice vars)
{
	uint32_t end = root->args ? doc->token[root->args].pair : 0;

	for (uint32_t i = root->args + 1; i < end; i = graphql_skip_value(doc, i + 2)) {
		struct slice name = graphql_word(doc, i), value;
		AUTO_FREE char *path = xasprintf("/%.*s", (int)name.n, name.p);
		uint8_t buf[4096];
		enum graphql_fact fact = graphql_find_value(
			doc, root, slice_from_str(path), vars, buf, sizeof(buf), &value);

		printf(" ");
		print_word(name);
		printf(fact == GRAPHQL_ABSENT ? "-" : fact == GRAPHQL_UNKNOWN ? "?" : "=");
		for (size_t k = 0; fact == GRAPHQL_KNOWN && k < value.n; k++)
			printf("%02x", value.p[k]);
	}
}

static void print_roots(const struct graphql *doc, const struct graphql_op *op, struct slice vars)
{
	static const char *const types[] = {"query", "mutation", "subscription"};
	struct graphql_root roots[GRAPHQL_MAX_ROOTS];
	const char *why = NULL;
	size_t n = 0;

	printf("%s ", types[op->type]);
	print_word(op->name);
	if (graphql_list_roots(doc, op, roots, &n, &why) < 0) {
		printf(" unknown;");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		printf(" (");
		print_word(roots[i].alias);
		printf(":");
		print_word(roots[i].name);
		print_arguments(doc, &roots[i], vars);
		printf(")");
	}
	printf(";");
}

int main(void)
{
	AUTO_FREE char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		const char *at = line, *why = NULL;
		struct slice text = read_hex(&at), vars = read_hex(&at);
		struct arena arena;
		struct graphql doc;

		arena_init(&arena, GRAPHQL_ARENA_SIZE(text.n));
		if (graphql_parse(text, &arena, &doc, &why) < 0)
			printf("no");
		else
			for (size_t i = 0; i < doc.n_ops; i++)
				print_roots(&doc, &doc.op[i], vars);
		printf("\n");
		arena_done(&arena);
		free((void *)(uintptr_t)text.p);
		free((void *)(uintptr_t)vars.p);
	}
	return 0;
}
