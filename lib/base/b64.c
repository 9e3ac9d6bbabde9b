/* SPDX-License-Identifier: Apache-2.0 */
#include "b64.h"

#include <errno.h>
#include <stdbool.h>

size_t b64_encode(struct slice in, char *ret)
{
	static const char digits[] = B64_DIGITS;
	char *at = ret;

	for (size_t i = 0; i < in.n; i += 3) {
		size_t n = MIN(in.n - i, (size_t)3);
		uint32_t bits = (uint32_t)in.p[i] << 16;

		bits |= n > 1 ? (uint32_t)in.p[i + 1] << 8 : 0;
		bits |= n > 2 ? in.p[i + 2] : 0;
		*at++ = digits[bits >> 18];
		*at++ = digits[bits >> 12 & 63];
		*at++ = n > 1 ? digits[bits >> 6 & 63] : '=';
		*at++ = n > 2 ? digits[bits & 63] : '=';
	}
	return (size_t)(at - ret);
}

static bool is_skipped(const char *skip, uint8_t c)
{
	return c && strchr(skip, c);
}

ssize_t b64_decode(struct slice in, const char *skip, uint8_t *buf, size_t size)
{
	uint32_t bits = 0;
	size_t n = 0, have = 0, i = 0;

	for (; i < in.n && in.p[i] != '='; i++) {
		int digit = b64_digit(in.p[i]);

		if (digit < 0 && is_skipped(skip, in.p[i]))
			continue;
		if (digit < 0)
			return -EBADMSG;
		bits = bits << 6 | (uint32_t)digit;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (n == size)
			return -EMSGSIZE;
		buf[n++] = (uint8_t)(bits >> have);
	}
	while (i < in.n && (in.p[i] == '=' || is_skipped(skip, in.p[i])))
		i++;
	return i == in.n ? (ssize_t)n : -EBADMSG;
}
