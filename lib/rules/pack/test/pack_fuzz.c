/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a pack, then requests to it: one that is read keeps to its limits, and every request
 * has an effect. */
#include <assert.h>
#include "lib/rules/pack/pack_match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void match_case(const struct pack *p, const struct pack_case *c, struct arena *arena)
{
	struct pack_request req = {.method = c->method, .body = c->body, .has_body = c->has_body};
	const uint8_t *mark = memchr(c->target.p, '?', c->target.n);
	size_t n = mark ? (size_t)(mark - c->target.p) : c->target.n;
	struct pack_effect e;

	arena_reset(arena);
	if (canon_normal_path(slice_of(c->target.p, n), arena, &req.path, &req.odd) < 0)
		return;
	if (mark)
		req.query = slice_of(mark + 1, c->target.n - n - 1);
	pack_match(p, &req, &e);
	assert(e.row ? !e.why && e.object[0] : e.why && !e.object[PACK_MAX_OBJECT]);
	req.has_body = false;
	pack_match(p, &req, &e);
	assert(!e.row == (e.why != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_PACK struct pack p = {0};
	struct arena arena;
	struct err err = {0};

	if (pack_parse(slice_of(data, size), "fuzz", &p, &err) < 0) {
		assert(err.text[0] && !p.name && !p.row);
		return 0;
	}
	assert(p.name && p.n_rows && p.n_hosts && p.n_cases);
	arena_init(&arena, 2 * PACK_MAX_LINE);
	for (size_t i = 0; i < p.n_cases; i++)
		match_case(&p, &p.cases[i], &arena);
	arena_done(&arena);
	return 0;
}
