/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_internal.h"

/* can[i][k]: some text is matched by the first i bytes of a and the first k of b. */
bool pack_glob_meets(struct slice a, struct slice b)
{
	bool can[PACK_MAX_WORD + 1][PACK_MAX_WORD + 1] = {{false}};

	for (size_t i = 0; i <= a.n; i++)
		for (size_t k = 0; k <= b.n; k++) {
			bool star_a = i > 0 && a.p[i - 1] == '*',
			     star_b = k > 0 && b.p[k - 1] == '*';

			can[i][k] =
				(i == 0 && k == 0) ||
				(star_a && (can[i - 1][k] || (k > 0 && can[i][k - 1]))) ||
				(star_b &&
					(can[i][k > 0 ? k - 1 : 0] || (i > 0 && can[i - 1][k]))) ||
				(i > 0 && k > 0 && a.p[i - 1] == b.p[k - 1] && can[i - 1][k - 1]);
		}
	return can[a.n][b.n];
}
