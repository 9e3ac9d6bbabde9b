/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte says how the rest is cut into pieces. What is understood is the same in any
 * pieces. */
#include <stdlib.h>

#include "lib/wire/guestapi/probe_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_all(const uint8_t *data, size_t size, size_t step, uint64_t *ret_sum)
{
	static struct probe_reader r;
	struct probe_answer a;
	size_t n = 0;

	r = (struct probe_reader){0};
	for (size_t at = 0; at < size; at += step) {
		struct slice in = slice_of(data + at, MIN(step, size - at));

		while (probe_reader_feed(&r, &in, &a) == 1) {
			if (a.out.n > PROBE_FRAME_MAX_OUT)
				abort();
			*ret_sum = *ret_sum * 31 + a.number * 7 + a.status + a.out.n;
			n++;
		}
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t one = 0, other = 0;

	if (size < 2)
		return 0;
	if (read_all(data + 1, size - 1, size, &one) !=
			read_all(data + 1, size - 1, data[0] + 1u, &other) ||
		one != other)
		abort();
	return 0;
}
