/* SPDX-License-Identifier: Apache-2.0 */
/* A link of a guest. What is accepted has only bytes that a person sees and is accepted again in
 * the same form. */
#include "lib/rules/url/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct url url, again;

	if (url_parse(slice_of(data, size), &url, NULL) < 0)
		return 0;
	check(url.n <= URL_MAX && strlen(url.text) == url.n);
	for (size_t i = 0; i < url.n; i++)
		check(url.text[i] > ' ' && url.text[i] <= '~');
	check(url_parse(slice_of(url.text, url.n), &again, NULL) == 0);
	check(strcmp(url.text, again.text) == 0 && url.path == again.path);
	return 0;
}
