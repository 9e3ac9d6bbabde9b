/* SPDX-License-Identifier: Apache-2.0 */
#include "quote.h"

#include <string.h>

#include "lib/base/mem.h"

char *quote_sh(const char *text)
{
	char *out = xmalloc(4 * strlen(text) + 3), *p = out;

	*p++ = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(p, "'\\''", 4);
			p += 4;
		} else {
			*p++ = *text;
		}
	}
	*p++ = '\'';
	*p = '\0';
	return out;
}
