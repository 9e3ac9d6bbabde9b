/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of an answer: one byte of flags, then u16 length + bytes of name and value by turns. What
 * is taken is canonical after canon_make_resp, and can be said again.
 */
#include <assert.h>
#include "lib/wire/http/h2_resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t flags = rd_u8(&rd);
	struct http_fault fault = {0};
	struct h2_fields again;
	struct http_resp resp;
	struct arena arena;
	struct h2_resp r;

	arena_init(&arena, HTTP_ARENA_SIZE);
	h2_resp_begin(&r, &arena);
	while (!rd.bad && rd.n > 0) {
		struct slice name = rd_str(&rd), value = rd_str(&rd);

		if (!rd.bad)
			h2_resp_add(&r, name, value);
	}
	if (h2_resp_take(&r, flags & 1, flags & 2, &resp, &fault) < 0) {
		assert(fault.status == 502 && fault.why);
	} else if (canon_make_resp(&resp, &fault) == 0) {
		assert(canon_check_resp(&resp) == 0);
		assert(h2_put_resp(&resp, &again) == 0);
		assert(!(flags & 1) || resp.body.absent || resp.body.kind == HTTP_BODY_NONE);
	}
	arena_done(&arena);
	return 0;
}
