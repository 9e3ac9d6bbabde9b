/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include <errno.h>

static bool is_named(const struct service *s, uint32_t rules, struct slice key)
{
	for (size_t i = 0; i < s->n_captures; i++)
		if (rules & UINT32_C(1) << i && jtext_is_word(key, s->capture[i].field))
			return true;
	return false;
}

static void take_out(uint8_t *raw, size_t n, struct capture_to *to)
{
	struct slice value;

	if (jtext_ascii(slice_of(raw, n), to->buf, to->size, &value) == 0)
		to->found(to->user, value);
	memset(raw, '*', n);
	to->n++;
}

int capture_clean(
	const struct service *s, uint32_t rules, uint8_t *text, size_t n, struct capture_to *to)
{
	struct jtext_walk w = jtext_begin(slice_of(text, n), OAUTH_MAX_DEPTH);
	struct jtext_member m;
	int r;

	w.takes_array = true;
	while ((r = jtext_next(&w, &m)) == 1) {
		if (!is_named(s, rules, m.key) || m.kind == JTEXT_LITERAL)
			continue;
		if (m.kind != JTEXT_STRING)
			return -EPROTO;
		if (m.value.n > 2)
			take_out(text + (m.value.p - text) + 1, m.value.n - 2, to);
	}
	return r;
}
