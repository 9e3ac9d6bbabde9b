/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses the side that is listened to and how the rest is cut into pieces. */
#include "lib/wire/guestapi/exec_frame.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const struct exec_frame *f)
{
	struct exec_spec spec;
	struct exec_attach attach;
	struct exec_attached attached;
	enum exec_reason reason;
	struct slice text;
	uint64_t at;
	uint16_t rows, cols;
	uint8_t v;
	bool b;

	if (f->type == EXEC_SPEC && exec_spec_decode(f->payload, &spec) == 0) {
		struct bufq q;
		struct slice frame;

		/* An accepted payload is encoded again as the same bytes. */
		bufq_init(&q, EXEC_HEADER + EXEC_MAX_PAYLOAD);
		if (exec_put_spec(&q, &spec) < 0)
			abort();
		frame = bufq_peek(&q);
		if (frame.n != EXEC_HEADER + f->payload.n || frame.n != bufq_len(&q) ||
			memcmp(frame.p + EXEC_HEADER, f->payload.p, f->payload.n) != 0)
			abort();
		bufq_done(&q);
		exec_spec_done(&spec);
	}
	(void)!exec_get_resize(f->payload, &rows, &cols);
	(void)!exec_get_signal(f->payload, &v);
	(void)!exec_get_exit(f->payload, &b, &v);
	(void)!exec_get_error(f->payload, &v, &text);
	if (exec_get_attach(f->payload, &attach) == 0 && attach.session[0] &&
		!exec_session_is_valid(attach.session))
		abort();
	(void)!exec_get_attached(f->payload, &attached);
	(void)!exec_get_offset(f->payload, &at);
	(void)!exec_get_detached(f->payload, &reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	size_t step = how / 2 ? how / 2 : size + 1;
	struct exec_reader reader;
	struct exec_frame f;

	exec_reader_init(&reader, how & 1 ? EXEC_FROM_HOST : EXEC_FROM_GUEST);
	while (rd.n > 0) {
		struct slice in = rd_bytes(&rd, MIN(step, rd.n));

		while (exec_reader_feed(&reader, &in, &f) == 1)
			decode(&f);
	}
	exec_reader_done(&reader);
	return 0;
}
