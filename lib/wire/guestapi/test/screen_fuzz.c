/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte says how the rest is cut: cut or whole, the same is shown and remembered. */
#include <stdlib.h>
#include <string.h>

#include "lib/wire/guestapi/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(struct screen *s, struct slice in, size_t step, struct bufq *q)
{
	struct rd rd = rd_init(in);

	bufq_init(q, in.n + SCREEN_MAX_START);
	while (rd.n > 0)
		screen_replay(s, rd_bytes(&rd, step < rd.n ? step : rd.n), q);
	if (bufq_len(q) > in.n)
		abort();
	screen_put_start(s, q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	size_t step = (size_t)rd_u8(&rd) + 1;
	struct slice in = rd_bytes(&rd, rd.n);
	struct screen a = {0}, b = {0};
	struct bufq qa, qb;

	show(&a, in, step, &qa);
	show(&b, in, size + 1, &qb);
	if (bufq_len(&qa) != bufq_len(&qb) || !slice_eq(bufq_peek(&qa), bufq_peek(&qb)))
		abort();
	if (a.changed != b.changed || a.n_keys != b.n_keys)
		abort();
	bufq_done(&qa);
	bufq_done(&qb);
	return 0;
}
