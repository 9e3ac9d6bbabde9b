/* SPDX-License-Identifier: Apache-2.0 */
#include "pem.h"

#include "lib/base/b64.h"
#include "lib/base/mem.h"

uint8_t *pem_next(const char **at, size_t *ret_n)
{
	const char *begin, *end;

	while ((begin = strstr(*at, PEM_BEGIN))) {
		AUTO_FREE uint8_t *der = xmalloc(PEM_MAX_DER);
		ssize_t n;

		begin += strlen(PEM_BEGIN);
		end = strstr(begin, PEM_END);
		if (!end)
			break;
		*at = end;
		n = b64_decode(slice_of(begin, (size_t)(end - begin)), "\r\n", der, PEM_MAX_DER);
		if (n > 0) {
			*ret_n = (size_t)n;
			return TAKE(der);
		}
	}
	*at += strlen(*at);
	return NULL;
}
