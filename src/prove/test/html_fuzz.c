/* SPDX-License-Identifier: Apache-2.0 */
/* For any output of a guest: it opens no tag, ends no quote and has no layout effect. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "src/prove/html.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr("<>\"'", text[i]) ||
			((uint8_t)text[i] < 0x20 && !strchr("\t\n", text[i])) || text[i] == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *once = NULL;
	AUTO_FREE char *twice = NULL;
	size_t n_once = 0, n_twice = 0;
	FILE *f = open_memstream(&once, &n_once);

	if (!f)
		abort();
	html_put(f, slice_of(data, size));
	(void)fclose(f);
	check(once, n_once);
	/* The output is UTF-8: a second pass replaces nothing but &. */
	f = open_memstream(&twice, &n_twice);
	if (!f)
		abort();
	html_put(f, slice_of(once, MIN(n_once, (size_t)HTML_MAX_TEXT)));
	(void)fclose(f);
	check(twice, n_twice);
	return 0;
}
