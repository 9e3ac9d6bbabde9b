/* SPDX-License-Identifier: Apache-2.0 */
#include "canon_named.h"

#include <errno.h>

bool canon_named_has(struct slice names, struct slice name)
{
	struct slice word;

	while (canon_text_next(&names, &word)) {
		if (slice_eq(word, name))
			return true;
	}
	return false;
}

int canon_named_write(struct wr *wr, const struct http_headers *headers, struct slice names)
{
	for (size_t i = 0; i < headers->n; i++) {
		const struct http_header *h = &headers->list[i];

		if (!canon_named_has(names, h->name))
			continue;
		wr_bytes(wr, h->name);
		wr_u8(wr, ':');
		wr_bytes(wr, h->value);
		wr_u8(wr, '\n');
	}
	return wr->bad ? -ENAMETOOLONG : 0;
}

int canon_named_read(struct slice text, struct http_headers *ret)
{
	ret->n = 0;
	while (text.n) {
		const uint8_t *end = memchr(text.p, '\n', text.n);
		const uint8_t *colon = memchr(text.p, ':', text.n);
		struct http_header h;

		if (!end || !colon || colon > end || ret->n == ret->max)
			return -EBADMSG;
		h.name = slice_of(text.p, (size_t)(colon - text.p));
		h.value = slice_of(colon + 1, (size_t)(end - colon - 1));
		if (!canon_text_is_lower_token(h.name) || !canon_text_is_trimmed_value(h.value))
			return -EBADMSG;
		ret->list[ret->n++] = h;
		text = slice_of(end + 1, text.n - (size_t)(end + 1 - text.p));
	}
	return 0;
}
