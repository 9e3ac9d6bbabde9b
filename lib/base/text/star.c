/* SPDX-License-Identifier: Apache-2.0 */
#include "star.h"

#include <ctype.h>

static bool is_same(uint8_t a, uint8_t b, bool fold)
{
	return a == b || (fold && tolower(a) == tolower(b));
}

bool star_match(struct slice pattern, struct slice text, bool fold)
{
	size_t p = 0, t = 0, star = pattern.n, back = 0;

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			back = t;
		} else if (p < pattern.n && is_same(pattern.p[p], text.p[t], fold)) {
			p++;
			t++;
		} else if (star < pattern.n) {
			p = star + 1;
			t = ++back;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}
