/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte says how the rest is cut into pieces and how many commands wait for an answer. */
#include <stdlib.h>
#include "lib/vm/vmm/qmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pretend_to_write(struct qmp *q)
{
	int fd;
	struct slice out = qmp_out(q, &fd);

	if (out.n)
		qmp_wrote(q, out.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice all = slice_of(data + 1, size ? size - 1 : 0);
	struct qmp q;

	if (!size)
		return 0;
	qmp_init(&q);
	for (int i = 0; i < (data[0] & 3); i++) {
		if (qmp_send(&q, i, "query-status", NULL, -1) < 0)
			abort();
	}
	for (size_t step = 1 + (data[0] >> 2); all.n;) {
		struct slice piece = slice_of(all.p, MIN(step, all.n));
		struct qmp_item it = {};
		int r = qmp_feed(&q, &piece, &it, NULL);

		if (r < 0)
			break;
		if (r > 0)
			qmp_item_done(&it);
		all = slice_of(piece.p, all.n - (size_t)(piece.p - all.p));
		pretend_to_write(&q);
	}
	qmp_done(&q);
	return 0;
}
