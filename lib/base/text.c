/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

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
