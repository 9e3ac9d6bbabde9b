/* SPDX-License-Identifier: Apache-2.0 */
/* Every row that is read can be written, and is then read as the same row. */
#include <stdlib.h>
#include "lib/rules/airlock/dirty.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t line[DIRTY_MAX_LINE];
	static struct dirty_row row, again;
	struct slice rest = slice_of(data, size);

	while (dirty_next(&rest, &row)) {
		struct wr wr = wr_init(line, sizeof(line));
		struct slice text;

		if (dirty_encode(&wr, &row) < 0)
			abort();
		text = slice_of(line, wr.n);
		if (dirty_next(&text, &again) != 1 || text.n || again.copy != row.copy ||
			strcmp(again.path, row.path) != 0 || strcmp(again.mount, row.mount) != 0 ||
			strcmp(again.detail, row.detail) != 0)
			abort();
	}
	return 0;
}
