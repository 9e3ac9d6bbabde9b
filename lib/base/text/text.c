/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdio.h>

size_t text_character(struct slice s, uint32_t *ret)
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

bool text_is_plain(uint32_t v)
{
	return (v >= 0x20 && v < 0x7f) ||
	       (v >= 0xa0 && v != 0xad && !(v >= 0x200b && v <= 0x200f) &&
		       !(v >= 0x2028 && v <= 0x202e) && !(v >= 0x2060 && v <= 0x206f) &&
		       v != 0xfeff && v != 0x61c && !(v >= 0xfff0 && v <= 0xfffb) &&
		       !(v >= 0xe0000 && v <= 0xe0fff));
}

bool text_is_visible(uint32_t v)
{
	bool is_blank = v == 0x34f || v == 0x115f || v == 0x1160 || v == 0x17b4 || v == 0x17b5 ||
			(v >= 0x180b && v <= 0x180f) || v == 0x2800 || v == 0x3164 || v == 0xffa0 ||
			(v >= 0xfe00 && v <= 0xfe0e) || (v >= 0x1d173 && v <= 0x1d17a);

	return text_is_plain(v) && !is_blank;
}

size_t text_escape(struct slice s, char ret[TEXT_ESCAPE_SIZE])
{
	uint32_t v = 0;
	size_t n = text_character(s, &v);

	if (n > 1)
		(void)snprintf(ret, TEXT_ESCAPE_SIZE, "<U+%04X>", (unsigned)(v & 0x1fffff));
	else
		(void)snprintf(ret, TEXT_ESCAPE_SIZE, "<%02X>", s.p[0]);
	return n > 1 ? n : 1;
}

bool text_is_all_plain(struct slice s)
{
	while (s.n > 0) {
		uint32_t v = 0;
		size_t n = text_character(s, &v);

		if (n == 0 || !text_is_plain(v))
			return false;
		s = slice_of(s.p + n, s.n - n);
	}
	return true;
}
