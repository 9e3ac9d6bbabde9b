/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as a request of a browser, and as a response of a guest. What is accepted as the callback
 * is one target without a blank; a redirection stays at the port. */
#include "src/sbx/open/callback.h"

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
	static const struct callback cb = {
		.at = {.port = 54545, .path = "/callback"}, .has_state = true, .state = "s"};
	static char target[CALLBACK_HEAD], next[URL_MAX + 1];
	const char *why;

	size = size < CALLBACK_HEAD ? size : CALLBACK_HEAD;
	if (callback_read(&cb, slice_of(data, size), target, &why) == 200)
		check(strncmp(target, "/callback?", 10) == 0 && !strpbrk(target, " \r\n\t") &&
			strstr(target, "state="));
	if (callback_response(&cb, slice_of(data, size), next) > 0)
		check(!next[0] || (next[0] == '/' && next[1] != '/' && !strpbrk(next, " \r\n\t")));
	return 0;
}
