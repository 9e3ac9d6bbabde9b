/* SPDX-License-Identifier: Apache-2.0 */
/* A link of a guest. What is accepted has only bytes that a person sees, is accepted again in the
 * same form, and names no callback below URL_MIN_PORT. */
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
	struct url_callback cb;

	if (url_parse(slice_of(data, size), &url, NULL) < 0)
		return 0;
	check(url.n <= URL_MAX && strlen(url.text) == url.n);
	for (size_t i = 0; i < url.n; i++)
		check(url.text[i] > ' ' && url.text[i] <= '~');
	check(url_parse(slice_of(url.text, url.n), &again, NULL) == 0);
	check(strcmp(url.text, again.text) == 0 && url.path == again.path);
	if (url_callback(&url, &cb, NULL) == 1)
		check(cb.port >= URL_MIN_PORT && cb.path[0] == '/' && !strstr(cb.path, "/../"));
	return 0;
}
