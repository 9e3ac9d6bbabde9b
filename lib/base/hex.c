/* SPDX-License-Identifier: Apache-2.0 */
#include "hex.h"

#include <errno.h>

void hex_encode(const uint8_t *b, size_t n, char *ret)
{
	static const char digits[] = HEX_LOWER;

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[b[i] >> 4];
		ret[2 * i + 1] = digits[b[i] & 15];
	}
}

void hex_print(const uint8_t *b, size_t n, char *ret)
{
	hex_encode(b, n, ret);
	ret[2 * n] = '\0';
}

static int lower_digit(uint8_t c)
{
	return c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
}

int hex_decode(struct slice hex, uint8_t *ret)
{
	if (hex.n % 2)
		return -EBADMSG;
	for (size_t i = 0; i < hex.n; i += 2) {
		int high = lower_digit(hex.p[i]), low = lower_digit(hex.p[i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		ret[i / 2] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

bool hex_is(const char *s, size_t n)
{
	return strspn(s, HEX_LOWER) == n && !s[n];
}

void hex_put_percent(struct wr *wr, uint8_t c)
{
	static const char digits[] = HEX_UPPER;

	wr_u8(wr, '%');
	wr_u8(wr, (uint8_t)digits[c >> 4]);
	wr_u8(wr, (uint8_t)digits[c & 15]);
}
