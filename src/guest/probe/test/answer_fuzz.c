/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an answer: the first byte selects DNS (even) or a connection (odd). */
#include <stdio.h>
#include <stdlib.h>

#include "src/guest/probe/net/answer.h"
#include "lib/base/mem.h"
#include "src/guest/probe/verb/verb.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* One line of plain text for any input. */
static void check_line(const char *text, size_t n)
{
	if (n == 0 || text[n - 1] != '\n')
		abort();
	for (size_t i = 0; i + 1 < n; i++)
		if (text[i] < 0x20 || text[i] >= 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	AUTO_FREE char *exact = NULL, *text = NULL;
	size_t len = 0;
	FILE *out;
	int r;

	if (n < 2)
		return 0;
	/* A heap copy of exactly that size: detects reads beyond the end. */
	exact = xmalloc(n - 1);
	memcpy(exact, p + 1, n - 1);
	out = open_memstream(&text, &len);
	if (!out)
		return 0;
	r = p[0] % 2 ? answer_talk(out, slice_of(exact, n - 1))
		     : answer_dns(out, slice_of(exact, n - 1));
	(void)fclose(out);
	if (r != PROBE_POSSIBLE && r != PROBE_REFUSED)
		abort();
	check_line(text, len);
	return 0;
}
