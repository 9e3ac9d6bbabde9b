/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_clean.h"

#include <stdbool.h>

#include "lib/base/mem.h"
#include "lib/base/text/text.h"

#define CUT "..."

static bool is_space(char c)
{
	return c == ' ' || c == '\n';
}

static char *trim_clean(char *text, size_t n)
{
	size_t from = 0;

	while (n > 0 && is_space(text[n - 1]))
		n--;
	text[n] = '\0';
	while (text[from] == '\n')
		from++;
	memmove(text, text + from, n - MIN(from, n) + 1);
	return text;
}

char *prove_clean(struct slice s, size_t max)
{
	char *text = xmalloc(max + sizeof(CUT));
	size_t n = 0;

	while (s.n > 0 && n + 4 <= max) {
		uint32_t v = 0;
		size_t len = text_character(s, &v);

		if (len && (v == '\n' || text_is_plain(v))) {
			memcpy(text + n, s.p, len);
			n += len;
		} else {
			text[n++] = v == '\t' ? ' ' : '?';
		}
		s = slice_of(s.p + MAX(len, (size_t)1), s.n - MAX(len, (size_t)1));
	}
	if (s.n > 0) {
		memcpy(text + n, CUT, sizeof(CUT) - 1);
		n += sizeof(CUT) - 1;
	}
	return trim_clean(text, n);
}

char *prove_last_line(const char *text)
{
	const char *last = strrchr(text, '\n');

	/* prove_clean removes empty lines at the end */
	return xstrdup(last ? last + 1 : text);
}
