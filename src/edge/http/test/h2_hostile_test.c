/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that writes its frames itself. */
#include "h2_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/clock.h"

#define END_STREAM 1
#define END_HEADERS 4
#define MANY 20000 /* rounds of a flood: far more than any limit */

static uint8_t block[65536];
static struct wr head;

static void put_length(size_t n)
{
	if (n < 127) {
		wr_u8(&head, (uint8_t)n);
		return;
	}
	wr_u8(&head, 127);
	for (n -= 127; n >= 128; n >>= 7)
		wr_u8(&head, (uint8_t)(n | 128));
	wr_u8(&head, (uint8_t)n);
}

/* A field that is in no table. */
static void put_field(struct slice name, struct slice value)
{
	wr_u8(&head, 0);
	put_length(name.n);
	wr_bytes(&head, name);
	put_length(value.n);
	wr_bytes(&head, value);
}

static void put(const char *name, const char *value)
{
	put_field(slice_from_str(name), slice_from_str(value));
}

static void begin_head(const char *method)
{
	head = wr_init(block, sizeof(block));
	put(":method", method);
	put(":scheme", "https");
	put(":path", "/a");
	put(":authority", "example.test");
}

static void send_head(struct h2_rig *r, uint32_t id, uint8_t flags)
{
	h2_rig_frame(r, NGHTTP2_HEADERS, END_HEADERS | flags, id, slice_of(block, head.n));
}

static void send_get(struct h2_rig *r, uint32_t id)
{
	begin_head("GET");
	send_head(r, id, END_STREAM);
}

static uint64_t began_ms;

/* The limit is a rate: a flood that a slow machine sends for seconds may ask more often. */
static uint64_t most_asked(void)
{
	return 2 * H2_JUNK_BURST + H2_JUNK_PER_S * (clock_mono_ms() - began_ms) / 1000;
}

static struct h2_rig *new_raw(void)
{
	struct h2_rig *r = h2_rig_new(false);

	began_ms = clock_mono_ms();
	h2_rig_preface(r);
	h2_rig_turn(r);
	return r;
}

/* The connection is closed, guest and keeper were informed, and its memory is freed. */
static void must_be_over(struct h2_rig *r)
{
	h2_rig_turn(r);
	assert_null(h2_rig_conn(r));
	assert_int_equal(r->n_frames[NGHTTP2_GOAWAY], 1);
	assert_int_not_equal(r->goaway, NGHTTP2_NO_ERROR);
	assert_true(r->n_faults > 0);
	assert_int_equal(r->e.net->n_conns, 1);
	assert_true(r->most_held <= 65536 * 4);
	h2_rig_free(r);
}

/* CVE-2023-44487 */
static void rapid_reset(void **state)
{
	struct h2_rig *r = new_raw();

	for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
		send_get(r, 2 * i + 1);
		h2_rig_frame(r, NGHTTP2_RST_STREAM, 0, 2 * i + 1, slice_of("\0\0\0\x08", 4));
		if (i % 16 == 0)
			h2_rig_turn(r);
		assert_true(r->e.net->n_conns <= H2_MAX_STREAMS + NET_ASKS);
	}
	assert_in_range(r->n_asked, 1, most_asked());
	must_be_over(r);
}

/* The same while the keeper does not answer: few asks are sent, and few slots used. */
static void rapid_reset_of_a_slow_keeper(void **state)
{
	struct h2_rig *r = new_raw();

	r->decide = 0;
	for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
		send_get(r, 2 * i + 1);
		h2_rig_frame(r, NGHTTP2_RST_STREAM, 0, 2 * i + 1, slice_of("\0\0\0\x08", 4));
		if (i % 16 == 0)
			h2_rig_turn(r);
		assert_true(r->e.net->n_conns <= H2_MAX_STREAMS + NET_ASKS);
	}
	h2_rig_turn(r);
	assert_in_range(r->n_asked, 1, NET_ASKS);
	r->decide = 1;
	must_be_over(r);
}

/* CVE-2025-8671: the guest never resets, but makes us do it. */
static void made_to_reset(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct h2_rig *r = new_raw();

		for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
			uint32_t id = 2 * i + 1;

			send_get(r, id);
			if (how == 0) /* after the end of the stream */
				h2_rig_frame(r, NGHTTP2_DATA, 0, id, slice_of("x", 1));
			else if (how == 1) /* a window overflow */
				h2_rig_frame(r, NGHTTP2_WINDOW_UPDATE, 0, id,
					slice_of("\x7f\xff\xff\xff", 4));
			else /* no window update */
				h2_rig_frame(
					r, NGHTTP2_WINDOW_UPDATE, 0, id, slice_of("\0\0\0\0", 4));
			h2_rig_turn(r);
			assert_true(r->e.net->n_conns <= H2_MAX_STREAMS + NET_ASKS);
		}
		assert_in_range(r->n_asked, 1, most_asked());
		must_be_over(r);
	}
}

/* Denied requests are answered and their bodies reset: that is counted too. */
static void refused_bodies(void **state)
{
	struct h2_rig *r = new_raw();

	r->decide = -1;
	for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
		begin_head("POST");
		send_head(r, 2 * i + 1, 0);
		h2_rig_turn(r);
	}
	assert_in_range(r->n_asked, 1, most_asked());
	must_be_over(r);
}

static const struct {
	const char *what;
	uint8_t type, flags;
	bool on_stream;
	const char *payload;
	size_t n;
} floods[] = {
	{"SETTINGS", NGHTTP2_SETTINGS, 0, false, "", 0},
	{"SETTINGS that say something", NGHTTP2_SETTINGS, 0, false, "\0\1\0\0\0\0", 6},
	{"PING", NGHTTP2_PING, 0, false, "12345678", 8},
	{"answers to no PING", NGHTTP2_PING, 1, false, "12345678", 8},
	{"PRIORITY", NGHTTP2_PRIORITY, 0, true, "\0\0\0\0\1", 5},
	{"empty DATA", NGHTTP2_DATA, 0, true, "", 0},
	{"padding alone", NGHTTP2_DATA, 8, true, "\0", 1},
	{"more padding alone", NGHTTP2_DATA, 8, true, "\3\0\0\0", 4},
	{"tiny WINDOW_UPDATE", NGHTTP2_WINDOW_UPDATE, 0, true, "\0\0\0\1", 4},
	{"tiny WINDOW_UPDATE of all", NGHTTP2_WINDOW_UPDATE, 0, false, "\0\0\0\1", 4},
	{"unknown frames", 77, 0, false, "abc", 3},
	{"ALTSVC", NGHTTP2_ALTSVC, 0, false, "\0\0", 2},
};

static void floods_end_the_connection(void **state)
{
	for (size_t k = 0; k < ARRAY_LEN(floods); k++) {
		struct h2_rig *r = new_raw();

		begin_head("POST");
		send_head(r, 1, 0);
		for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
			h2_rig_frame(r, floods[k].type, floods[k].flags,
				floods[k].on_stream ? 1 : 0,
				slice_of(floods[k].payload, floods[k].n));
			if (i % 64 == 0)
				h2_rig_turn(r);
		}
		if (h2_rig_conn(r))
			fail_msg("%s goes on", floods[k].what);
		must_be_over(r);
	}
}

/* Answers of nghttp2 pile up if the guest does not read them. */
static void a_flood_that_is_not_read(void **state)
{
	struct h2_rig *r = new_raw();

	r->reads = 0;
	for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
		h2_rig_frame(r, NGHTTP2_PING, 0, 0, slice_of("12345678", 8));
		h2_rig_turn(r);
	}
	r->reads = SIZE_MAX;
	must_be_over(r);
}

static void continuation_flood(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct h2_rig *r = new_raw();

		begin_head("GET");
		h2_rig_frame(r, NGHTTP2_HEADERS, END_STREAM, 1, slice_of(block, head.n));
		for (uint32_t i = 0; i < MANY && h2_rig_conn(r); i++) {
			head = wr_init(block, sizeof(block));
			if (how == 0)
				put("x", "y");
			h2_rig_frame(r, NGHTTP2_CONTINUATION, 0, 1, slice_of(block, head.n));
			h2_rig_turn(r);
		}
		assert_int_equal(r->n_asked, 0);
		must_be_over(r);
	}
}

/* A field of 4,000 bytes in the table, and one byte per reference to it. */
static void header_bomb(void **state)
{
	static uint8_t value[4000], refs[16000];
	struct h2_rig *r = new_raw();

	memset(value, 'x', sizeof(value));
	memset(refs, 0x80 | 62, sizeof(refs));
	begin_head("GET");
	wr_u8(&head, 0x40);
	put_length(1);
	wr_bytes(&head, slice_from_str("x"));
	put_length(sizeof(value));
	wr_bytes(&head, slice_of(value, sizeof(value)));
	send_head(r, 1, END_STREAM);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 1);
	begin_head("GET");
	wr_bytes(&head, slice_of(refs, 40)); /* 160 kB: refused */
	send_head(r, 3, END_STREAM);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 1);
	assert_int_equal(r->n_faults, 1);
	assert_non_null(strstr(r->fault, "too large"));
	assert_non_null(h2_rig_conn(r));
	h2_rig_frame(r, NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 5, slice_of(refs, sizeof(refs)));
	h2_rig_turn(r);
	assert_string_equal(r->fault, "the HTTP/2 header block is too large");
	must_be_over(r);
}

static void more_than_the_window(void **state)
{
	static uint8_t data[16384];
	struct h2_rig *r = new_raw();

	r->decide = 0;
	begin_head("POST");
	send_head(r, 1, 0);
	for (int i = 0; i < 5; i++)
		h2_rig_frame(r, NGHTTP2_DATA, 0, 1, slice_of(data, sizeof(data)));
	h2_rig_turn(r);
	assert_int_equal(r->reset, NGHTTP2_FLOW_CONTROL_ERROR);
	assert_true(r->most_held <= H2_WINDOW);
	h2_rig_verdict(r, 0, true);
	h2_rig_turn(r);
	assert_int_equal(r->e.net->n_conns, 1);
	h2_rig_free(r);
}

static void more_streams_than_allowed(void **state)
{
	struct h2_rig *r = new_raw();

	h2_rig_frame(r, NGHTTP2_SETTINGS, 1, 0, (struct slice){0});
	for (uint32_t i = 0; i < H2_MAX_STREAMS; i++)
		send_get(r, 2 * i + 1);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, H2_MAX_STREAMS);
	assert_non_null(h2_rig_conn(r));
	send_get(r, 2 * H2_MAX_STREAMS + 1);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, H2_MAX_STREAMS);
	must_be_over(r);
}

/* Other connections use all slots of the table: the stream is refused, and a retry may succeed. */
static void no_place_in_the_table(void **state)
{
	struct h2_rig *r = new_raw();
	struct conn *first = NULL;

	while (r->e.net->n_conns < NET_MAX_CONNS)
		first = conn_new(&r->e, CONN_TCP, 0);
	send_get(r, 1);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 0);
	assert_int_equal(r->reset, NGHTTP2_REFUSED_STREAM);
	conn_over(&r->e, first);
	send_get(r, 3);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 1);
	assert_non_null(h2_rig_conn(r));
	h2_rig_free(r);
}

/* Inside a session no other connection can be closed, so the new stream is refused. */
static void no_memory_left(void **state)
{
	struct h2_rig *r = new_raw();

	r->e.net->budget = 0;
	send_get(r, 1);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 0);
	assert_non_null(strstr(r->fault, "of memory: refused an HTTP/2 stream"));
	h2_rig_free(r);
}

/* An endless head blocks its connection: it has a timeout, with or without streams. */
static void a_head_that_does_not_end(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct h2_rig *r = new_raw();

		if (how == 1)
			send_get(r, 1);
		begin_head("GET");
		h2_rig_frame(r, NGHTTP2_HEADERS, END_STREAM, how ? 3 : 1, slice_of(block, head.n));
		h2_rig_turn(r);
		assert_int_equal(r->n_asked, how);
		assert_int_equal(h2_rig_conn(r)->h2->wait, H2_WAIT_BLOCK);
		net_on_timer(&r->e, h2_rig_conn(r)->timer.key);
		h2_rig_turn(r);
		assert_string_equal(r->fault, "timed out reading the request head");
		must_be_over(r);
	}
}

static void stay_open_in_silence(struct h2_rig *r)
{
	assert_int_not_equal(h2_rig_conn(r)->h2->wait, H2_WAIT_BLOCK);
	assert_int_equal(r->n_faults, 0);
	h2_rig_free(r);
}

/* nghttp2 ignores a head of a closed stream and reports nothing: no head is awaited. */
static void an_ignored_head_is_not_waited_for(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct h2_rig *r = new_raw();
		struct rig_way *w;

		send_get(r, 1);
		h2_rig_turn(r);
		w = h2_rig_way(r, "/a");
		rig_way_head(w, 200, HTTP_BODY_NONE, 0, "x", "y");
		w->to_end = true;
		h2_rig_turn(r);
		assert_null(h2_rig_conn(r)->h2->streams);
		begin_head("GET");
		h2_rig_frame(r, NGHTTP2_HEADERS, how ? END_STREAM : END_STREAM | END_HEADERS, 1,
			slice_of(block, head.n));
		h2_rig_turn(r);
		stay_open_in_silence(r);
	}
}

/* The trailers of a request that is reset before they are complete. */
static void a_head_of_a_reset_stream_is_not_waited_for(void **state)
{
	struct h2_rig *r = new_raw();
	struct conn *c;

	begin_head("POST");
	send_head(r, 1, 0);
	h2_rig_turn(r);
	head = wr_init(block, sizeof(block));
	put("x-tail", "1");
	h2_rig_frame(r, NGHTTP2_HEADERS, END_STREAM, 1, slice_of(block, head.n));
	h2_rig_turn(r);
	c = h2_rig_conn(r);
	assert_int_equal(c->h2->wait, H2_WAIT_BLOCK);
	rig_way_close(h2_rig_way(r, "/a"));
	h2_rig_turn(r);
	h2_rig_frame(r, NGHTTP2_CONTINUATION, END_HEADERS, 1, slice_of("", 0));
	h2_rig_turn(r);
	assert_null(c->h2->streams);
	stay_open_in_silence(r);
}

/* Only lack of memory makes nghttp2 fail here, so the test corrupts its input. */
static void an_error_of_nghttp2_ends_the_connection(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct h2_rig *r = new_raw();
		struct conn *c;

		begin_head("POST");
		send_head(r, 1, 0);
		h2_rig_turn(r);
		c = h2_rig_conn(r)->h2->streams;
		c->sid = 0;
		if (how == 0)
			h2_stream_consumed(&r->e, c, 1);
		else
			h2_stream_reset(&r->e, c);
		h2_rig_turn(r);
		assert_string_equal(r->fault, "internal HTTP/2 error");
		must_be_over(r);
	}
}

static void a_tail_that_cannot_be_sent_resets_its_stream(void **state)
{
	static struct http_header bad = {.name = {(const uint8_t *)"A B", 3}};
	struct h2_rig *r = new_raw();
	struct rig_way *w;
	struct conn *c;

	send_get(r, 1);
	h2_rig_turn(r);
	w = h2_rig_way(r, "/a");
	rig_way_head(w, 200, HTTP_BODY_CHUNKED, 0, "x", "y");
	h2_rig_turn(r);
	c = h2_rig_conn(r)->h2->streams;
	c->stream->tail = (struct http_headers){.list = &bad, .n = 1};
	c->out_end = true;
	h2_stream_resume(&r->e, c);
	h2_rig_turn(r);
	assert_int_equal(r->reset, NGHTTP2_INTERNAL_ERROR);
	assert_int_equal(r->n_frames[NGHTTP2_GOAWAY], 0);
	assert_null(h2_rig_conn(r)->h2->streams);
	h2_rig_free(r);
}

#define S(text) slice_of(text, sizeof(text) - 1)

/* Each fault affects one stream and is reported with its reason; nothing is forwarded. */
static void heads_are_judged_here(void **state)
{
	const struct {
		struct slice name, value;
		const char *why;
	} rows[] = {
		{S("x"), S("1\r\nhost: other.test"), "control character"},
		{S("x"), S("1\0"), "control character"},
		{S("x\r\ny"), S("1"), "invalid character"},
		{S("X"), S("1"), "invalid character"},
		{S(""), S("1"), "invalid character"},
		{S("x"), S(" 1"), "leading or trailing spaces"},
		{S("transfer-encoding"), S("chunked"), "not allowed in HTTP/2"},
		{S("connection"), S("x"), "not allowed in HTTP/2"},
		{S("te"), S("gzip"), "TE"},
		{S(":path"), S("/b"), "duplicate"},
		{S(":protocol"), S("websocket"), "unknown"},
		{S("content-length"), S("5"), "shorter"},
		{S("host"), S("other.test"), "Host"},
	};
	struct h2_rig *r = new_raw();

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin_head("GET");
		put_field(rows[i].name, rows[i].value);
		send_head(r, 2 * i + 1, END_STREAM);
		h2_rig_turn(r);
		assert_int_equal(r->n_faults, i + 1);
		if (!strstr(r->fault, rows[i].why))
			fail_msg("%s instead of %s", r->fault, rows[i].why);
	}
	assert_int_equal(r->n_asked, 0);
	assert_int_equal(r->e.net->n_conns, 1);
	send_get(r, 1001);
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 1);
	h2_rig_free(r);
}

/* A body of another length than announced is incomplete for the origin too. */
static void bodies_are_judged_here(void **state)
{
	static const struct {
		const char *length, *data, *trailer;
		uint8_t flags;
		const char *why;
	} rows[] = {
		{"5", "abcdef", NULL, 0, "longer"},
		{"5", "abcdef", NULL, END_STREAM, "longer"},
		{"5", "abcd", NULL, END_STREAM, "shorter"},
		{"0", "a", NULL, END_STREAM, "longer"},
		{"5", "abcde", "x-sum", END_STREAM, "trailers"},
		{NULL, "abc", "content-length", END_STREAM, "not allowed as a trailer"},
		{NULL, "abc", ":path", END_STREAM, "after regular headers"},
		{NULL, "abc", "x-sum", 0, "duplicate HEADERS frame"},
	};

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct h2_rig *r = new_raw();

		begin_head("POST");
		if (rows[i].length)
			put("content-length", rows[i].length);
		send_head(r, 1, 0);
		h2_rig_turn(r);
		h2_rig_frame(r, NGHTTP2_DATA, rows[i].trailer ? 0 : rows[i].flags, 1,
			slice_from_str(rows[i].data));
		if (rows[i].trailer) {
			head = wr_init(block, sizeof(block));
			put(rows[i].trailer, "1");
			send_head(r, 1, rows[i].flags);
		}
		h2_rig_turn(r);
		assert_int_equal(r->n_ways, 1);
		assert_false(r->ways[0].ended);
		assert_true(r->ways[0].eof);
		assert_int_equal(r->n_faults, 1);
		if (!strstr(r->fault, rows[i].why))
			fail_msg("%s instead of %s", r->fault, rows[i].why);
		assert_non_null(h2_rig_conn(r));
		h2_rig_free(r);
	}
}

static void what_is_not_http2_ends_at_once(void **state)
{
	struct h2_rig *r = h2_rig_new(false);

	h2_rig_raw(r, S("GET / HTTP/1.1\r\nhost: example.test\r\n\r\n"));
	must_be_over(r);
	r = new_raw();
	h2_rig_frame(r, NGHTTP2_PUSH_PROMISE, END_HEADERS, 1, S("\0\0\0\2\x82"));
	must_be_over(r);
	r = new_raw();
	h2_rig_frame(r, NGHTTP2_HEADERS, END_HEADERS | END_STREAM, 1, S("\xff\xff\xff\xff\xff"));
	must_be_over(r);
}

/* The split of the data does not matter. */
static void one_byte_at_a_time(void **state)
{
	struct h2_rig *r = h2_rig_new(false);
	uint8_t *all;
	size_t n;

	h2_rig_preface(r);
	begin_head("POST");
	send_head(r, 1, 0);
	h2_rig_frame(r, NGHTTP2_DATA, END_STREAM, 1, S("\0"));
	send_get(r, 3);
	all = r->up;
	n = r->n_up;
	r->up = NULL;
	r->n_up = 0;
	for (size_t i = 0; i < n; i++) {
		h2_rig_raw(r, slice_of(all + i, 1));
		h2_rig_turn(r);
	}
	free(all);
	assert_int_equal(r->n_asked, 2);
	assert_true(r->ways[0].ended && r->ways[1].ended && !r->ways[0].is_wrong);
	assert_int_equal(r->ways[0].n_got, 1);
	h2_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rapid_reset),
		cmocka_unit_test(rapid_reset_of_a_slow_keeper),
		cmocka_unit_test(made_to_reset),
		cmocka_unit_test(refused_bodies),
		cmocka_unit_test(floods_end_the_connection),
		cmocka_unit_test(a_flood_that_is_not_read),
		cmocka_unit_test(continuation_flood),
		cmocka_unit_test(header_bomb),
		cmocka_unit_test(more_than_the_window),
		cmocka_unit_test(more_streams_than_allowed),
		cmocka_unit_test(no_place_in_the_table),
		cmocka_unit_test(no_memory_left),
		cmocka_unit_test(a_head_that_does_not_end),
		cmocka_unit_test(an_ignored_head_is_not_waited_for),
		cmocka_unit_test(a_head_of_a_reset_stream_is_not_waited_for),
		cmocka_unit_test(an_error_of_nghttp2_ends_the_connection),
		cmocka_unit_test(a_tail_that_cannot_be_sent_resets_its_stream),
		cmocka_unit_test(heads_are_judged_here),
		cmocka_unit_test(bodies_are_judged_here),
		cmocka_unit_test(what_is_not_http2_ends_at_once),
		cmocka_unit_test(one_byte_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
