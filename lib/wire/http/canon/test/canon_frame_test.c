/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/canon/canon_frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct http_header list[] = {
	{{(const uint8_t *)"accept", 6}, {(const uint8_t *)"*/*", 3}},
	{{(const uint8_t *)"x", 1}, {(const uint8_t *)"", 0}},
};

static struct http_req some_req(void)
{
	return (struct http_req){.method = slice_from_str("PUT"),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = slice_from_str("a.test"),
		.port = 8443,
		.path = slice_from_str("/x"),
		.has_query = true,
		.query = slice_from_str("q"),
		.body = {.kind = HTTP_BODY_LENGTH, .length = 70000},
		.expect_continue = true,
		.headers = {list, 2, 2}};
}

static size_t put_some(uint8_t *buf, size_t size)
{
	struct http_req req = some_req();
	struct http_resp resp = {.status = 200, .body = {.kind = HTTP_BODY_CHUNKED}};
	struct http_headers trailers = {list, 2, 2};
	struct wr wr = wr_init(buf, size);

	resp.headers = trailers;
	assert_int_equal(canon_put_req(&wr, 1, &req), 0);
	assert_int_equal(canon_put_data_head(&wr, 1, 5), 0);
	wr_bytes(&wr, slice_from_str("hello"));
	assert_int_equal(canon_put_resp(&wr, CANON_MAX_STREAM, &resp), 0);
	assert_int_equal(canon_put_end(&wr, 1, &trailers), 0);
	assert_int_equal(canon_put_end(&wr, 2, NULL), 0);
	assert_int_equal(canon_put_reset(&wr, 3, 9), 0);
	return wr.n;
}

struct seen {
	unsigned int n[CANON_N_KINDS];
	size_t n_data;
};

static void look(const struct canon_frame *f, struct arena *arena, struct seen *seen)
{
	struct http_req req;
	struct http_resp resp;
	struct http_headers trailers;

	seen->n[f->kind]++;
	if (f->kind == CANON_HEAD && f->stream == 1) {
		assert_int_equal(canon_get_req(f->payload, arena, &req), 0);
		assert_true(slice_eq_str(req.host, "a.test"));
		assert_int_equal(req.port, 8443);
		assert_true(req.has_query && slice_eq_str(req.query, "q") && req.expect_continue);
		assert_int_equal(req.body.length, 70000);
		assert_int_equal(req.headers.n, 2);
		assert_int_equal(canon_get_resp(f->payload, arena, &resp), -EBADMSG);
	} else if (f->kind == CANON_HEAD) {
		assert_int_equal(f->stream, CANON_MAX_STREAM);
		assert_int_equal(canon_get_resp(f->payload, arena, &resp), 0);
		assert_int_equal(resp.status, 200);
		assert_int_equal(canon_get_req(f->payload, arena, &req), -EBADMSG);
	} else if (f->kind == CANON_DATA) {
		seen->n_data += f->payload.n;
	} else if (f->kind == CANON_END) {
		assert_int_equal(canon_get_end(f->payload, arena, &trailers), 0);
		assert_int_equal(trailers.n, f->stream == 1 ? 2 : 0);
	} else {
		assert_int_equal(f->kind, CANON_RESET);
		assert_true(slice_eq(f->payload, slice_of("\x09", 1)));
	}
}

static void read_cut(struct slice in, size_t step)
{
	struct canon_reader reader;
	struct canon_frame frame;
	struct arena arena;
	struct seen seen = {0};

	arena_init(&arena, HTTP_ARENA_SIZE);
	canon_reader_init(&reader);
	while (in.n > 0) {
		struct slice piece = canon_text_cut(in, 0, step);
		int r;

		in = canon_text_cut(in, step, in.n);
		while ((r = canon_reader_feed(&reader, &piece, &frame)) == 1) {
			arena_reset(&arena);
			look(&frame, &arena, &seen);
		}
		assert_int_equal(r, 0);
	}
	assert_int_equal(seen.n[CANON_HEAD], 2);
	assert_int_equal(seen.n[CANON_END], 2);
	assert_int_equal(seen.n[CANON_RESET], 1);
	assert_int_equal(seen.n_data, 5);
	canon_reader_done(&reader);
	arena_done(&arena);
}

static void frames_survive_any_cut(void **state)
{
	uint8_t buf[4096];
	size_t n = put_some(buf, sizeof(buf));

	for (size_t step = 1; step <= n; step++)
		read_cut(slice_of(buf, n), step);
}

static void what_does_not_fit_is_not_written(void **state)
{
	struct http_req req = some_req();
	uint8_t buf[256];
	struct wr wr;
	size_t n;

	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(canon_put_req(&wr, 1, &req), 0);
	n = wr.n;
	for (size_t size = 0; size < n; size++) {
		wr = wr_init(buf, size);
		assert_int_equal(canon_put_req(&wr, 1, &req), -EMSGSIZE);
	}
}

static void wrong_arguments_are_refused(void **state)
{
	struct http_req req = some_req();
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(canon_put_req(&wr, 0, &req), -EINVAL);
	assert_int_equal(canon_put_req(&wr, CANON_MAX_STREAM + 1, &req), -EINVAL);
	assert_int_equal(canon_put_data_head(&wr, 1, 0), -EINVAL);
	assert_int_equal(canon_put_data_head(&wr, 1, CANON_MAX_DATA + 1), -EINVAL);
	req.host = slice_from_str("A");
	assert_int_equal(canon_put_req(&wr, 1, &req), -EINVAL);
}

static int feed_header(uint32_t n, uint8_t kind, uint32_t stream)
{
	uint8_t buf[CANON_FRAME_HEADER];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct slice in = slice_of(buf, sizeof(buf));
	struct canon_reader reader;
	struct canon_frame frame;
	int r;

	wr_u32(&wr, n);
	wr_u8(&wr, kind);
	wr_u24(&wr, stream);
	canon_reader_init(&reader);
	r = canon_reader_feed(&reader, &in, &frame);
	if (r < 0) {
		in = slice_of(buf, sizeof(buf));
		assert_int_equal(canon_reader_feed(&reader, &in, &frame), -EBADMSG);
	}
	canon_reader_done(&reader);
	return r;
}

static void wrong_headers_end_the_stream(void **state)
{
	assert_int_equal(feed_header(1, CANON_HEAD, 1), 0);
	assert_int_equal(feed_header(1, 0, 1), -EBADMSG);
	assert_int_equal(feed_header(1, CANON_N_KINDS, 1), -EBADMSG);
	assert_int_equal(feed_header(1, CANON_HEAD, 0), -EBADMSG);
	assert_int_equal(feed_header(0, CANON_DATA, 1), -EBADMSG);
	assert_int_equal(feed_header(CANON_MAX_DATA + 1, CANON_DATA, 1), -EBADMSG);
	assert_int_equal(feed_header(CANON_MAX_HEAD + 1, CANON_HEAD, 1), -EBADMSG);
	assert_int_equal(feed_header(CANON_MAX_END + 1, CANON_END, 1), -EBADMSG);
	assert_int_equal(feed_header(2, CANON_RESET, 1), -EBADMSG);
	assert_int_equal(feed_header(UINT32_MAX, CANON_DATA, 1), -EBADMSG);
}

/* A hostile edge: every byte of a HEAD changed to every value, and the head cut short. Either it is
 * refused or it is canonical, and then it is said again in the same bytes. */
static void a_changed_head_is_refused_or_canonical(void **state)
{
	struct http_req req = some_req(), got;
	uint8_t buf[256], copy[256], again[256];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct arena arena;
	size_t n_refused = 0;

	arena_init(&arena, HTTP_ARENA_SIZE);
	assert_int_equal(canon_put_req(&wr, 1, &req), 0);
	for (size_t at = CANON_FRAME_HEADER; at < wr.n; at++) {
		for (unsigned int c = 0; c < 256; c++) {
			struct slice payload =
				slice_of(copy + CANON_FRAME_HEADER, wr.n - CANON_FRAME_HEADER);
			struct wr out = wr_init(again, sizeof(again));

			memcpy(copy, buf, wr.n);
			copy[at] = (uint8_t)c;
			arena_reset(&arena);
			if (canon_get_req(payload, &arena, &got) < 0) {
				n_refused++;
				continue;
			}
			assert_int_equal(canon_put_req(&out, 1, &got), 0);
			assert_true(slice_eq(slice_of(again, out.n), slice_of(copy, wr.n)));
		}
	}
	assert_true(n_refused > 1000);
	for (size_t n = 0; n < wr.n - CANON_FRAME_HEADER; n++)
		assert_int_equal(canon_get_req(slice_of(buf + CANON_FRAME_HEADER, n), &arena, &got),
			-EBADMSG);
	arena_done(&arena);
}

static void bodies_are_as_long_as_said(void **state)
{
	struct http_req req = some_req();
	struct http_headers trailers = {list, 1, 1};
	struct canon_flow f = {0};

	req.body.length = 10;
	assert_int_equal(canon_flow_data(&f, 1), -EBADMSG);
	assert_int_equal(canon_flow_end(&f, NULL), -EBADMSG);
	assert_int_equal(canon_flow_req(&f, &req), 0);
	assert_int_equal(canon_flow_req(&f, &req), -EBADMSG);
	assert_int_equal(canon_flow_data(&f, 4), 0);
	assert_int_equal(canon_flow_end(&f, NULL), -EBADMSG);
	assert_int_equal(canon_flow_data(&f, 7), -EBADMSG);
	assert_int_equal(canon_flow_data(&f, 6), 0);
	assert_int_equal(canon_flow_end(&f, &trailers), -EBADMSG);
	assert_int_equal(canon_flow_end(&f, NULL), 0);
	assert_int_equal(canon_flow_data(&f, 1), -EBADMSG);
	assert_int_equal(canon_flow_end(&f, NULL), -EBADMSG);
}

static void answers_follow_informational_ones(void **state)
{
	struct http_resp hint = {.status = 103},
			 resp = {.status = 200, .body = {HTTP_BODY_CHUNKED}};
	struct http_resp head = {.status = 200, .body = {HTTP_BODY_LENGTH, 5, true}};
	struct http_headers trailers = {list, 1, 1};
	struct canon_flow f = {0}, g = {0};

	assert_int_equal(canon_flow_resp(&f, &hint), 0);
	assert_int_equal(canon_flow_resp(&f, &hint), 0);
	assert_int_equal(canon_flow_data(&f, 1), -EBADMSG);
	assert_int_equal(canon_flow_resp(&f, &resp), 0);
	assert_int_equal(canon_flow_resp(&f, &hint), -EBADMSG);
	assert_int_equal(canon_flow_data(&f, 1), 0);
	assert_int_equal(canon_flow_end(&f, &trailers), 0);
	assert_int_equal(canon_flow_resp(&g, &head), 0);
	assert_int_equal(canon_flow_data(&g, 1), -EBADMSG);
	assert_int_equal(canon_flow_end(&g, NULL), 0);
}

static void only_a_websocket_switches(void **state)
{
	struct http_req req = {.websocket = true}, plain = {0};
	struct canon_flow f = {0}, g = {0};

	assert_int_equal(canon_flow_switch(&f), -EBADMSG);
	assert_int_equal(canon_flow_req(&f, &req), 0);
	assert_int_equal(canon_flow_data(&f, 1), -EBADMSG);
	assert_int_equal(canon_flow_switch(&f), 0);
	assert_int_equal(canon_flow_switch(&f), -EBADMSG);
	assert_int_equal(canon_flow_data(&f, 1), 0);
	assert_int_equal(canon_flow_req(&g, &plain), 0);
	assert_int_equal(canon_flow_switch(&g), -EBADMSG);
}

/* A reader that is told of bytes it has not seen goes on behind them. */
static void data_may_go_past_the_reader(void **state)
{
	uint8_t buf[64];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct canon_reader rd;
	struct canon_frame f;
	struct slice in;

	canon_reader_init(&rd);
	assert_int_equal(canon_put_data_head(&wr, 1, 10), 0);
	assert_int_equal(canon_reader_data_left(&rd), 0);
	in = slice_of(buf, CANON_FRAME_HEADER - 1);
	assert_int_equal(canon_reader_feed(&rd, &in, &f), 0);
	assert_int_equal(canon_reader_data_left(&rd), 0);
	in = slice_of(&buf[CANON_FRAME_HEADER - 1], 4);
	assert_int_equal(canon_reader_feed(&rd, &in, &f), 1);
	assert_int_equal(f.payload.n, 3);
	assert_int_equal(canon_reader_data_left(&rd), 7);
	canon_reader_pass_data(&rd, 6);
	assert_int_equal(canon_reader_data_left(&rd), 1);
	canon_reader_pass_data(&rd, 1);
	assert_int_equal(canon_reader_data_left(&rd), 0);
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(canon_put_end(&wr, 1, NULL), 0);
	in = slice_of(buf, wr.n - 1);
	assert_int_equal(canon_reader_feed(&rd, &in, &f), 0);
	assert_int_equal(canon_reader_data_left(&rd), 0);
	in = slice_of(&buf[wr.n - 1], 1);
	assert_int_equal(canon_reader_feed(&rd, &in, &f), 1);
	assert_int_equal(f.kind, CANON_END);
	canon_reader_pass_data(&rd, 1);
	assert_int_equal(canon_reader_feed(&rd, &in, &f), -EBADMSG);
	canon_reader_done(&rd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_survive_any_cut),
		cmocka_unit_test(what_does_not_fit_is_not_written),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(wrong_headers_end_the_stream),
		cmocka_unit_test(a_changed_head_is_refused_or_canonical),
		cmocka_unit_test(bodies_are_as_long_as_said),
		cmocka_unit_test(answers_follow_informational_ones),
		cmocka_unit_test(only_a_websocket_switches),
		cmocka_unit_test(data_may_go_past_the_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
