/* SPDX-License-Identifier: Apache-2.0 */
#include "pem.h"

#include "lib/base/mem.h"

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 in lines. False when there is anything else in it. */
static bool decode_pem(const char *p, const char *end, uint8_t *buf, size_t size, size_t *ret_n)
{
	uint32_t acc = 0;
	unsigned bits = 0;
	size_t n = 0;

	for (; p < end && *p != '='; p++) {
		int v = value_of(*p);

		if (*p == '\n' || *p == '\r')
			continue;
		if (v < 0)
			return false;
		acc = acc << 6 | (uint32_t)v;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (n == size)
			return false;
		buf[n++] = (uint8_t)(acc >> bits);
	}
	while (p < end && (*p == '=' || *p == '\n' || *p == '\r'))
		p++;
	*ret_n = n;
	return p == end && n > 0;
}

uint8_t *pem_next(const char **at, size_t *ret_n)
{
	const char *begin, *end;

	while ((begin = strstr(*at, PEM_BEGIN))) {
		AUTO_FREE uint8_t *der = xmalloc(PEM_MAX_DER);

		begin += strlen(PEM_BEGIN);
		end = strstr(begin, PEM_END);
		if (!end)
			break;
		*at = end;
		if (decode_pem(begin, end, der, PEM_MAX_DER, ret_n))
			return TAKE(der);
	}
	*at += strlen(*at);
	return NULL;
}
