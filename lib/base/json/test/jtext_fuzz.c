/* SPDX-License-Identifier: Apache-2.0 */
/* Another reader agrees with the walker; members and decoded strings stay inside of the text. */
#include <jansson.h>
#include <stdlib.h>
#include "lib/base/json/jtext.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_string(struct slice raw)
{
	AUTO_FREE uint8_t *out = xmalloc(raw.n + 1), *same = xmalloc(raw.n + 1);
	ssize_t n = jtext_decode(raw, out, raw.n), n_same;
	struct slice ascii;

	if (raw.n)
		memcpy(same, raw.p, raw.n);
	n_same = jtext_decode(slice_of(same, raw.n), same, raw.n);
	must(n == n_same && n <= (ssize_t)raw.n);
	must(n <= 0 || memcmp(out, same, (size_t)n) == 0);
	must(jtext_ascii(raw, out, raw.n, &ascii) == 0 && ascii.n <= raw.n);
}

static bool walk_text(struct slice text, unsigned *ret_n)
{
	struct jtext_walk w = jtext_begin(text, JTEXT_MAX_DEPTH);
	struct jtext_member m;
	int r;

	while ((r = jtext_next(&w, &m)) == 1) {
		must(m.key.p >= text.p && m.value.p + m.value.n <= text.p + text.n);
		check_string(m.key);
		if (m.kind == JTEXT_STRING)
			check_string(slice_of(m.value.p + 1, m.value.n - 2));
		*ret_n += m.depth == 1;
	}
	return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	size_t at = jtext_skip(text, 0), end = jtext_end(text, at), n_open = 0;
	unsigned n = 0;
	bool ok = walk_text(text, &n);
	json_t *j = json_loadb((const char *)data, size, JSON_DECODE_INT_AS_REAL, NULL);

	must(end <= size && (!ok || jtext_skip(text, end) == size));
	for (size_t i = 0; i < size; i++)
		n_open += data[i] == '{' || data[i] == '[';
	/* The other reader refuses more: bytes that are not UTF-8, NUL, numbers out of range. */
	must(!json_is_object(j) || n_open > JTEXT_MAX_DEPTH || ok);
	must(!ok || !j || json_object_size(j) <= n);
	json_decref(j);
	return 0;
}
