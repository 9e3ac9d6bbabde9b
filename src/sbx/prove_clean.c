#include "prove_clean.h"

#include <stdbool.h>

#include "lib/base/mem.h"

#define CUT "..."

/* The length of the valid character at s, 0 when there is none. */
static size_t character(struct slice s, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t c = s.p[0];
	size_t n = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;
	uint32_t v = n == 1 ? c : c & (0x7fu >> n);

	if ((n == 4 && (c & 0xf8) != 0xf0) || n > s.n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s.p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (s.p[i] & 0x3f);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*ret = v;
	return n;
}

static bool is_harmless(uint32_t v)
{
	return (v >= 0x20 && v < 0x7f) || v == '\n' ||
	       (v >= 0xa0 && v != 0xad && !(v >= 0x200b && v <= 0x200f) &&
		       !(v >= 0x2028 && v <= 0x202e) && !(v >= 0x2060 && v <= 0x206f) &&
		       v != 0xfeff && v != 0x61c && !(v >= 0xfff0 && v <= 0xfffb) &&
		       !(v >= 0xe0000 && v <= 0xe0fff));
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n';
}

static char *trim(char *text, size_t n)
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
		size_t len = character(s, &v);

		if (len && is_harmless(v)) {
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
	return trim(text, n);
}

char *prove_last_line(const char *text)
{
	const char *last = strrchr(text, '\n');

	/* prove_clean leaves no empty line at the end */
	return xstrdup(last ? last + 1 : text);
}
