/* SPDX-License-Identifier: Apache-2.0 */
#include "effect_query.h"

#include <strings.h>
#include "effect_internal.h"
#include "lib/base/hex.h"

enum effect_fact effect_query_decode(
	struct slice raw, uint8_t buf[EFFECT_MAX_VALUE], struct slice *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < raw.n; i++) {
		int c = raw.p[i] == '+' ? ' ' : raw.p[i];

		if (c == '%') {
			int hi = i + 2 < raw.n ? hex_digit(raw.p[i + 1]) : -1;
			int lo = i + 2 < raw.n ? hex_digit(raw.p[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return EFFECT_UNKNOWN;
			c = hi << 4 | lo;
			i += 2;
		}
		if (n == EFFECT_MAX_VALUE)
			return EFFECT_UNKNOWN;
		buf[n++] = (uint8_t)c;
	}
	*ret = slice_of(buf, n);
	return EFFECT_KNOWN;
}

bool effect_query_is_other_case(struct slice name, struct slice at)
{
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] >= 0x80)
			return true;
	return name.n == at.n && !slice_eq(name, at) &&
	       strncasecmp((const char *)name.p, (const char *)at.p, at.n) == 0;
}

/* id[]=1 and i%64=1 may be the field id */
static bool is_written_oddly(struct slice name)
{
	return name.n && (memchr(name.p, '%', name.n) || memchr(name.p, '[', name.n) ||
				 memchr(name.p, '+', name.n));
}

enum effect_fact effect_query_find(
	struct slice query, struct slice at, uint8_t buf[EFFECT_MAX_VALUE], struct slice *ret)
{
	enum effect_fact found = EFFECT_ABSENT;

	if (query.n && memchr(query.p, ';', query.n))
		return EFFECT_UNKNOWN;
	while (query.n) {
		struct slice field = effect_cut_until(&query, '&'),
			     name = effect_cut_until(&field, '=');

		if (is_written_oddly(name) || effect_query_is_other_case(name, at))
			return EFFECT_UNKNOWN;
		if (!slice_eq(name, at))
			continue;
		if (found != EFFECT_ABSENT)
			return EFFECT_UNKNOWN;
		found = effect_query_decode(field, buf, ret);
	}
	return found;
}
