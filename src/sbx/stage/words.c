/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include "lib/base/hex.h"
#include "lib/base/mem.h"

char *words_escape(const char *s)
{
	size_t n = strlen(s);
	char *out = xmalloc(3 * n + 2), *to = out;

	for (; *s; s++) {
		uint8_t c = (uint8_t)*s;

		if (c > ' ' && c < 0x7f && c != '%') {
			*to++ = *s;
			continue;
		}
		*to++ = '%';
		*to++ = HEX_UPPER[c >> 4];
		*to++ = HEX_UPPER[c & 15];
	}
	if (n == 0)
		*to++ = '%';
	*to = '\0';
	return out;
}

char *words_unescape(const char *s, size_t n)
{
	AUTO_FREE char *out = xmalloc(n + 1);
	size_t k = 0;

	if (n == 1 && s[0] == '%')
		n = 0;
	for (size_t i = 0; i < n; i++) {
		int high, low;

		if (s[i] != '%') {
			out[k++] = s[i];
			continue;
		}
		high = i + 2 < n ? hex_digit((uint8_t)s[i + 1]) : -1;
		low = i + 2 < n ? hex_digit((uint8_t)s[i + 2]) : -1;
		if (i + 2 >= n || high < 0 || low < 0 || (high | low) == 0)
			return NULL;
		out[k++] = (char)(high << 4 | low);
		i += 2;
	}
	out[k] = '\0';
	return TAKE(out);
}
