/* SPDX-License-Identifier: Apache-2.0 */
/* A method, a target and the text of headers, one after the other: what canon_named_read accepts is
 * written again alike, and each effect of a request has a text that is read again. */
#include "lib/rules/head/head.h"

#include <stdlib.h>
#include "lib/wire/http/canon/canon_named.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_named(struct slice text, const struct http_headers *headers)
{
	static uint8_t buf[CANON_NAMED_MAX], names[2 * CANON_NAMED_MAX];
	struct wr wr = wr_init(buf, sizeof(buf)), list = wr_init(names, sizeof(names));

	for (size_t i = 0; i < headers->n; i++)
		wr_printf(&list, "%s%.*s", i ? "," : "", (int)headers->list[i].name.n,
			(const char *)headers->list[i].name.p);
	check(canon_named_write(&wr, headers, slice_of(names, list.n)) == 0);
	check(slice_eq(slice_of(buf, wr.n), text));
}

static void check_effect(const struct effect *e)
{
	static struct effect_copy copy;
	char text[EFFECT_MAX_TEXT + 1];
	size_t n = effect_print(e, text);

	check(n > 0 && n <= EFFECT_MAX_TEXT);
	check(effect_parse(slice_of(text, n), &copy, NULL) == 0);
}

static struct slice next_line(struct slice *s)
{
	const uint8_t *end = s->n ? memchr(s->p, '\n', s->n) : NULL;
	struct slice line = slice_of(s->p, end ? (size_t)(end - s->p) : s->n);

	*s = slice_of(s->p + line.n + !!end, s->n - line.n - !!end);
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct http_header list[CANON_NAMED_HEADERS];
	static const uint8_t none[1];
	struct http_headers headers = {list, 0, CANON_NAMED_HEADERS};
	struct slice rest = n ? slice_of(p, n) : slice_of(none, 0), target;
	struct head h = {.host = slice_from_str("a.test"), .port = 443, .headers = &headers};
	struct head_effects got;
	struct arena arena;
	const uint8_t *mark;

	h.method = next_line(&rest);
	target = next_line(&rest);
	if (rest.n > CANON_NAMED_MAX || target.n > HTTP_MAX_TARGET ||
		!canon_text_is_token(h.method))
		return 0;
	mark = target.n ? memchr(target.p, '?', target.n) : NULL;
	h.has_query = mark != NULL;
	h.path = slice_of(target.p, mark ? (size_t)(mark - target.p) : target.n);
	h.query = mark ? slice_of(mark + 1, target.n - h.path.n - 1) : slice_of(none, 0);
	if (canon_named_read(rest, &headers) < 0)
		return 0;
	check_named(rest, &headers);
	h.names = slice_from_str("x-a,x-b");
	arena_init(&arena, HTTP_ARENA_SIZE);
	if (head_describe(&h, NULL, &arena, &got) == 0) {
		check(got.n >= 1);
		for (size_t i = 0; i < got.n; i++)
			check_effect(&got.v[i]);
	}
	arena_done(&arena);
	return 0;
}
