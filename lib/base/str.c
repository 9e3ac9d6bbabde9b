/* SPDX-License-Identifier: Apache-2.0 */
#include "str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include "hex.h"

int str_copy(char *buf, size_t size, const char *s)
{
	size_t n = strlen(s);

	if (n >= size) {
		buf[0] = '\0';
		return -ENAMETOOLONG;
	}
	memcpy(buf, s, n + 1);
	return 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && strcmp(s + n - k, suffix) == 0;
}

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

bool str_is_printable(const char *s)
{
	while (is_printable(*s))
		s++;
	return !*s;
}

void str_make_printable(char *s)
{
	for (; *s; s++) {
		if (!is_printable(*s))
			*s = '?';
	}
}

/* Reads leading digits; *end points after them. */
static int lead_u64(const char *s, uint64_t *ret, const char **end)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	*ret = v;
	*end = s;
	return 0;
}

int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	const char *end;
	uint64_t v;
	int r;

	r = lead_u64(s, &v, &end);
	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int str_to_size(const char *s, uint64_t *ret_bytes)
{
	static const char units[] = "kmgt";
	const char *end, *unit;
	uint64_t v;
	int r;

	r = lead_u64(s, &v, &end);
	if (r < 0)
		return r;
	unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
	if (unit) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (v > UINT64_MAX >> shift)
			return -ERANGE;
		v <<= shift;
		end++;
		if (strcasecmp(end, "ib") == 0)
			end += 2;
	}
	if (strcasecmp(end, "b") == 0)
		end++;
	if (*end)
		return -EINVAL;
	*ret_bytes = v;
	return 0;
}

int str_to_seconds(const char *s, uint64_t *ret_seconds)
{
	const char *end;
	uint64_t v, unit;
	int r;

	r = lead_u64(s, &v, &end);
	if (r < 0)
		return r;
	switch (*end) {
	case 's':
		unit = 1;
		break;
	case 'm':
		unit = 60;
		break;
	case 'h':
		unit = 3600;
		break;
	case 'd':
		unit = 86400;
		break;
	default:
		return -EINVAL;
	}
	if (end[1])
		return -EINVAL;
	if (__builtin_mul_overflow(v, unit, &v))
		return -ERANGE;
	*ret_seconds = v;
	return 0;
}

void str_from_size(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes;
	size_t i = 0;

	/* What one decimal would show as 1024.0 belongs to the next unit. */
	while (v >= 1023.95 && i + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		i++;
	}
	(void)snprintf(buf, size, v == (double)(uint64_t)v ? "%.0f %s" : "%.1f %s", v, units[i]);
}

void str_random_hex(char *buf, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t b;

		/* A host without random numbers is one on which nothing here is safe. */
		while (getrandom(&b, 1, 0) != 1)
			if (errno != EINTR)
				abort();
		hex_print(&b, 1, buf + 2 * i);
	}
	buf[2 * n] = '\0';
}
