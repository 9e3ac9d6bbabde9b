/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void a_request_and_its_answer(void **state)
{
	static const char *const more[] = {"accept", "*/*", "cookie", "a=1", "cookie", "b=2", NULL};
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "GET", "/a?x=1", SIZE_MAX, more);
	struct rig_way *w;

	h2_rig_turn(r);
	assert_string_equal(r->last.host, "example.test");
	assert_int_equal(r->last.port, 443);
	assert_string_equal(r->last.target, "/a?x=1");
	assert_string_equal(r->last.method, "GET");
	assert_true(r->last.tls);
	w = h2_rig_way(r, "/a");
	assert_non_null(w);
	assert_true(w->ended && w->is_https);
	assert_string_equal(w->head, "accept: */*\ncookie: a=1; b=2\n");
	rig_way_head(w, 200, HTTP_BODY_LENGTH, 5, "x-a", "b");
	w->to_say = 5;
	w->to_end = true;
	h2_rig_turn(r);
	assert_int_equal(s->status, 200);
	assert_string_equal(s->head, ":status: 200\nx-a: b\ncontent-length: 5\n");
	assert_int_equal(s->n_got, 5);
	assert_true(s->closed && s->error == 0 && !s->is_wrong);
	assert_true(w->eof);
	assert_int_equal(r->e.net->n_conns, 1);
	h2_rig_free(r);
}

static void a_body_has_its_length(void **state)
{
	static const char *const more[] = {"content-length", "100000", NULL};
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "PUT", "/a", 100000, more);
	struct rig_way *w;

	h2_rig_turn(r);
	w = h2_rig_way(r, "/a");
	assert_int_equal(w->body.kind, HTTP_BODY_LENGTH);
	assert_int_equal(w->n_got, 100000);
	assert_true(w->ended && !w->is_wrong);
	rig_way_head(w, 204, HTTP_BODY_NONE, 0, NULL, NULL);
	w->to_end = true;
	h2_rig_turn(r);
	assert_int_equal(s->status, 204);
	assert_true(s->closed && s->error == 0);
	h2_rig_free(r);
}

/* As gRPC: head and data of the answer while the request continues, trailers in both directions. */
static void both_directions_at_once(void **state)
{
	static const char *const more[] = {
		"te", "trailers", "content-type", "application/grpc", NULL};
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "POST", "/bidi", 0, more);
	struct rig_way *w;

	h2_rig_turn(r);
	w = h2_rig_way(r, "/bidi");
	assert_int_equal(w->body.kind, HTTP_BODY_CHUNKED);
	assert_true(w->te_trailers && !w->ended);
	w->echoes = true;
	rig_way_head(w, 200, HTTP_BODY_CHUNKED, 0, "content-type", "application/grpc");
	h2_rig_turn(r);
	assert_int_equal(s->status, 200);
	for (unsigned i = 1; i <= 50; i++) {
		h2_rig_send(r, s, 1000, false);
		h2_rig_turn(r);
		assert_int_equal(w->n_got, i * 1000);
		assert_int_equal(s->n_got, i * 1000);
	}
	s->tail = "7";
	h2_rig_send(r, s, 0, true);
	h2_rig_turn(r);
	assert_true(w->ended);
	assert_string_equal(w->trailers, "x-tail: 7\n");
	assert_false(s->closed);
	w->tail = "0";
	w->to_end = true;
	h2_rig_turn(r);
	assert_string_equal(s->trailers, "grpc-status: 0\n");
	assert_true(s->closed && s->error == 0 && !s->is_wrong && !w->is_wrong);
	h2_rig_free(r);
}

/* gRPC's answer of one head must have END_STREAM on it. */
static void an_answer_without_content_is_one_frame(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "POST", "/a", 10, NULL);
	unsigned data;

	h2_rig_turn(r);
	data = r->n_frames[NGHTTP2_DATA];
	rig_way_head(h2_rig_way(r, "/a"), 200, HTTP_BODY_LENGTH, 0, "grpc-status", "5");
	h2_rig_turn(r);
	assert_true(s->closed && s->error == 0);
	assert_int_equal(r->n_frames[NGHTTP2_DATA], data);
	h2_rig_free(r);
}

static void informational_heads_pass(void **state)
{
	static const char *const more[] = {"expect", "100-continue", NULL};
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "POST", "/a", 0, more);
	struct rig_way *w;

	h2_rig_turn(r);
	w = h2_rig_way(r, "/a");
	assert_true(w->expects);
	rig_way_head(w, 100, HTTP_BODY_NONE, 0, NULL, NULL);
	rig_way_head(w, 103, HTTP_BODY_NONE, 0, "link", "x");
	h2_rig_turn(r);
	assert_int_equal(s->n_informational, 2);
	h2_rig_send(r, s, 10, true);
	h2_rig_turn(r);
	assert_int_equal(w->n_got, 10);
	rig_way_head(w, 200, HTTP_BODY_CLOSE, 0, NULL, NULL);
	w->to_say = 3;
	w->to_end = true;
	h2_rig_turn(r);
	assert_int_equal(s->status, 200);
	assert_int_equal(s->n_got, 3);
	assert_true(s->closed && s->error == 0);
	h2_rig_free(r);
}

static void head_has_no_content(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "HEAD", "/a", SIZE_MAX, NULL);
	struct rig_way *w;

	h2_rig_turn(r);
	w = h2_rig_way(r, "/a");
	rig_way_head(w, 200, HTTP_BODY_LENGTH, 1234, NULL, NULL);
	w->to_end = true;
	h2_rig_turn(r);
	assert_string_equal(s->head, ":status: 200\ncontent-length: 1234\n");
	assert_true(s->closed && s->error == 0 && s->n_got == 0);
	/* A denial has none either. */
	r->decide = -1;
	s = h2_rig_open(r, "HEAD", "/b", SIZE_MAX, NULL);
	h2_rig_turn(r);
	assert_int_equal(s->status, 403);
	assert_true(s->closed && s->error == 0 && s->n_got == 0);
	h2_rig_free(r);
}

static void a_no_is_of_one_stream(void **state)
{
	static const char *const json[] = {"accept", "application/json", NULL};
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *a, *b, *c;

	r->decide = 2;
	a = h2_rig_get(r, "/a");
	b = h2_rig_get(r, "/no");
	c = h2_rig_open(r, "POST", "/no/c", 1000000, json);
	h2_rig_turn(r);
	assert_int_equal(b->status, 403);
	assert_true(b->closed && b->error == 0);
	assert_non_null(strstr(b->head, "proxy-status: sbx; error=http_request_denied"));
	assert_non_null(strstr(b->body, "Blocked by network policy: example.test:443\n"));
	assert_null(strstr(b->head, "connection"));
	/* The answer is complete, and the rest of the body is not needed. */
	assert_int_equal(c->status, 403);
	assert_non_null(strstr(c->body, "\"status\":403"));
	assert_true(c->closed && c->error == NGHTTP2_NO_ERROR);
	assert_true(c->n_sent < 200000);
	assert_false(a->closed);
	rig_way_head(h2_rig_way(r, "/a"), 200, HTTP_BODY_LENGTH, 0, NULL, NULL);
	h2_rig_turn(r);
	assert_int_equal(a->status, 200);
	assert_int_equal(r->n_ways, 1);
	h2_rig_free(r);
}

/* The host may no longer be intercepted: current streams continue, and no new one begins. */
static void a_stale_connection_ends_with_its_streams(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *a, *b;

	a = h2_rig_get(r, "/a");
	h2_rig_turn(r);
	r->decide = -1;
	r->reason = "there is no credential for it any more";
	b = h2_rig_get(r, "/b");
	h2_rig_turn(r);
	assert_int_equal(b->status, 403);
	assert_non_null(strstr(b->body, r->reason));
	assert_int_equal(r->goaway, NGHTTP2_NO_ERROR);
	assert_true(h2_rig_conn(r) && !a->closed);
	rig_way_head(h2_rig_way(r, "/a"), 200, HTTP_BODY_LENGTH, 5, NULL, NULL);
	h2_rig_way(r, "/a")->to_say = 5;
	h2_rig_way(r, "/a")->to_end = true;
	h2_rig_turn(r);
	assert_true(a->closed && a->error == 0 && a->n_got == 5);
	assert_null(h2_rig_conn(r));
	h2_rig_free(r);
}

/* A connection to one host names another: nothing is forwarded, and the keeper is informed. */
static void coalescing_is_misdirected(void **state)
{
	static const char *const other[] = {":authority", "other.test", NULL};
	static const char *const port[] = {":authority", "example.test:8443", NULL};
	static const char *const host[] = {"host", "other.test", NULL};
	const char *const *const tries[] = {other, port, host};
	struct h2_rig *r = h2_rig_new(true);

	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		struct rig_stream *s = h2_rig_open(r, "GET", "/a", SIZE_MAX, tries[i]);

		h2_rig_turn(r);
		assert_int_equal(s->status, 421);
		assert_true(s->closed && s->error == 0);
		assert_int_equal(r->n_faults, i + 1);
		assert_int_equal(r->n_asked, 0);
	}
	assert_non_null(strstr(r->fault, "Host"));
	(void)h2_rig_get(r, "/a");
	h2_rig_turn(r);
	assert_int_equal(r->n_asked, 1);
	h2_rig_free(r);
}

static void refusals_of_egress_are_said(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *a = h2_rig_get(r, "/a"), *b = h2_rig_get(r, "/b"),
			  *c = h2_rig_get(r, "/c");

	h2_rig_turn(r);
	rig_way_head(h2_rig_way(r, "/a"), 502, HTTP_BODY_NONE, 0, "sbx-reason", "no certificate");
	rig_way_head(h2_rig_way(r, "/b"), 403, HTTP_BODY_NONE, 0, "sbx-reason", "a foreign key");
	rig_way_close(h2_rig_way(r, "/c"));
	h2_rig_turn(r);
	assert_int_equal(a->status, 502);
	assert_non_null(strstr(a->body, "failed (the host is allowed): no certificate"));
	assert_int_equal(b->status, 403);
	assert_non_null(strstr(b->body, "a foreign key"));
	assert_int_equal(c->status, 502);
	assert_true(a->closed && b->closed && c->closed);
	assert_int_equal(a->error | b->error | c->error, 0);
	h2_rig_free(r);
}

/* A cut must not look like an end. */
static void a_cut_is_a_reset(void **state)
{
	const uint8_t reset[] = {1, 0, 0, 0, CANON_RESET, 1, 0, 0, 2};

	for (int how = 0; how < 3; how++) {
		struct h2_rig *r = h2_rig_new(true);
		struct rig_stream *s = h2_rig_get(r, "/a");
		struct rig_way *w;

		h2_rig_turn(r);
		w = h2_rig_way(r, "/a");
		rig_way_head(w, 200, how ? HTTP_BODY_CHUNKED : HTTP_BODY_CLOSE, 0, NULL, NULL);
		w->to_say = 100;
		h2_rig_turn(r);
		assert_int_equal(s->n_got, 100);
		if (how == 2)
			rig_way_bytes(w, slice_of(reset, sizeof(reset)));
		else
			rig_way_close(w);
		h2_rig_turn(r);
		assert_true(s->closed);
		assert_int_equal(s->error, NGHTTP2_INTERNAL_ERROR);
		assert_non_null(h2_rig_conn(r));
		h2_rig_free(r);
	}
}

static void an_answer_out_of_order_is_none(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *a = h2_rig_get(r, "/a"), *b = h2_rig_get(r, "/b"),
			  *c = h2_rig_open(r, "HEAD", "/c", SIZE_MAX, NULL);
	struct rig_way *w;

	h2_rig_turn(r);
	w = h2_rig_way(r, "/a");
	rig_way_head(w, 200, HTTP_BODY_LENGTH, 5, NULL, NULL);
	w->to_say = 6; /* one byte too many */
	w->to_end = true;
	w = h2_rig_way(r, "/b");
	w->to_end = true; /* without a head */
	w = h2_rig_way(r, "/c");
	w->method[0] = 'G'; /* with content */
	rig_way_head(w, 200, HTTP_BODY_LENGTH, 5, NULL, NULL);
	h2_rig_turn(r);
	assert_true(a->closed && a->error == NGHTTP2_INTERNAL_ERROR && a->n_got == 0);
	assert_int_equal(b->status, 502);
	assert_int_equal(c->status, 502);
	h2_rig_free(r);
}

static void the_guest_cancels(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *a, *b, *c;

	a = h2_rig_open(r, "POST", "/a", 0, NULL);
	b = h2_rig_get(r, "/b");
	h2_rig_turn(r);
	rig_way_head(h2_rig_way(r, "/b"), 200, HTTP_BODY_CHUNKED, 0, NULL, NULL);
	h2_rig_way(r, "/b")->to_say = 1000;
	r->decide = 0;
	c = h2_rig_get(r, "/c");
	h2_rig_turn(r);
	assert_int_equal(r->n_asks, 1);
	assert_int_equal(r->e.net->n_conns, 4);
	nghttp2_submit_rst_stream(r->client, 0, a->id, NGHTTP2_CANCEL);
	nghttp2_submit_rst_stream(r->client, 0, b->id, NGHTTP2_CANCEL);
	nghttp2_submit_rst_stream(r->client, 0, c->id, NGHTTP2_CANCEL);
	h2_rig_turn(r);
	assert_true(h2_rig_way(r, "/a")->eof && !h2_rig_way(r, "/a")->ended);
	assert_true(h2_rig_way(r, "/b")->eof);
	/* The stream with a pending ask keeps its slot until the answer. */
	assert_int_equal(r->e.net->n_conns, 2);
	h2_rig_verdict(r, 0, true);
	h2_rig_turn(r);
	assert_int_equal(r->e.net->n_conns, 1);
	assert_int_equal(r->n_frames[NGHTTP2_RST_STREAM], 0);
	h2_rig_free(r);
}

/* The answer completes before the request: it is delivered, and the rest is not awaited. */
static void an_early_answer(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_open(r, "POST", "/a", 0, NULL);
	struct rig_way *w;

	h2_rig_turn(r);
	w = h2_rig_way(r, "/a");
	rig_way_head(w, 413, HTTP_BODY_LENGTH, 20000, NULL, NULL);
	w->to_say = 20000;
	w->to_end = true;
	h2_rig_turn(r);
	assert_int_equal(s->n_got, 20000);
	assert_true(s->closed && s->error == NGHTTP2_NO_ERROR && w->eof);
	h2_rig_free(r);
}

static void a_hundred_at_once(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	char path[32];

	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "/%u", i);
		(void)h2_rig_open(r, "POST", path, 70000 + i, NULL);
	}
	h2_rig_turn(r);
	assert_int_equal(r->n_ways, 100);
	for (unsigned i = 0; i < 100; i++) {
		struct rig_way *w = &r->ways[i];

		assert_true(w->ended && !w->is_wrong);
		rig_way_head(w, 200, HTTP_BODY_CHUNKED, 0, NULL, NULL);
		w->to_say = 300000 + i;
		w->to_end = true;
		w->tail = "0";
	}
	h2_rig_turn(r);
	for (unsigned i = 0; i < 100; i++) {
		struct rig_stream *s = &r->streams[i];

		assert_true(s->closed && s->error == 0 && !s->is_wrong);
		(void)snprintf(path, sizeof(path), "/%u", i);
		assert_int_equal(s->n_got, h2_rig_way(r, path)->n_said);
		assert_string_equal(s->trailers, "grpc-status: 0\n");
	}
	assert_int_equal(r->e.net->n_conns, 1);
	h2_rig_free(r);
}

/* Two origins and one client do not read: each holds one window, and the others continue. */
static void who_does_not_read_stops_only_itself(void **state)
{
	const size_t large = 4 << 20;
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *a, *b;
	size_t sent;

	r->decide = 0;
	a = h2_rig_open(r, "POST", "/deaf", large, NULL);
	h2_rig_turn(r);
	/* Undecided: one window of data waits. */
	assert_int_equal(a->n_sent, H2_WINDOW);
	h2_rig_verdict(r, 0, true);
	r->ways[0].deaf = true;
	h2_rig_turn(r);
	sent = a->n_sent;
	assert_true(sent < large && sent >= H2_WINDOW);
	r->decide = 1;
	b = h2_rig_open(r, "POST", "/b", large, NULL);
	h2_rig_turn(r);
	assert_int_equal(h2_rig_way(r, "/b")->n_got, large);
	assert_true(h2_rig_way(r, "/b")->ended && a->n_sent == sent);
	assert_true(r->most_held <= 4 * 65536);
	r->ways[0].deaf = false;
	h2_rig_turn(r);
	assert_int_equal(h2_rig_way(r, "/deaf")->n_got, large);
	assert_false(h2_rig_way(r, "/deaf")->is_wrong || b->closed);
	h2_rig_free(r);
}

/* Data that waited in a cancelled stream is returned to the connection's window. */
static void cancelled_bytes_come_back(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s;

	r->decide = 0;
	for (unsigned i = 0; i < H2_MAX_STREAMS + 10; i++) {
		s = h2_rig_open(r, "POST", "/held", 1 << 20, NULL);
		h2_rig_turn(r);
		assert_int_equal(s->n_sent, H2_WINDOW);
		nghttp2_submit_rst_stream(r->client, 0, s->id, NGHTTP2_CANCEL);
		h2_rig_turn(r);
		h2_rig_verdict(r, 0, false);
	}
	r->decide = 1;
	s = h2_rig_open(r, "POST", "/last", 1 << 20, NULL);
	h2_rig_turn(r);
	assert_int_equal(h2_rig_way(r, "/last")->n_got, 1 << 20);
	h2_rig_free(r);
}

static void a_guest_that_does_not_read(void **state)
{
	const size_t large = 8 << 20;
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s[4];

	r->stalled = true;
	for (unsigned i = 0; i < 4; i++) {
		char path[8];

		(void)snprintf(path, sizeof(path), "/%u", i);
		s[i] = h2_rig_get(r, path);
		h2_rig_turn(r);
		rig_way_head(&r->ways[i], 200, HTTP_BODY_LENGTH, large, NULL, NULL);
		r->ways[i].to_say = large;
		r->ways[i].to_end = true;
		h2_rig_turn(r);
		assert_int_equal(s[i]->n_got, 256 * 1024); /* the client's window */
		assert_true(r->ways[i].n_said < large);
	}
	assert_true(r->most_held <= 5 * 65536);
	h2_rig_read(r);
	h2_rig_turn(r);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(s[i]->n_got, large);
		assert_true(s[i]->closed && s[i]->error == 0 && !s[i]->is_wrong);
	}
	/* The same if the connection itself is not read. */
	r->reads = 0;
	s[0] = h2_rig_get(r, "/again");
	h2_rig_turn(r);
	rig_way_head(h2_rig_way(r, "/again"), 200, HTTP_BODY_LENGTH, large, NULL, NULL);
	h2_rig_way(r, "/again")->to_say = large;
	h2_rig_way(r, "/again")->to_end = true;
	h2_rig_turn(r);
	assert_int_equal(s[0]->n_got, 0);
	r->reads = SIZE_MAX;
	h2_rig_turn(r);
	assert_int_equal(s[0]->n_got, large);
	assert_true(r->most_held <= 5 * 65536);
	h2_rig_free(r);
}

/* Heads wait in the library, so each stream has one at a time. */
static void heads_wait_for_the_guest(void **state)
{
	static char value[60000];
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s;
	struct conn *c;

	memset(value, 'x', sizeof(value) - 1);
	r->reads = 0;
	s = h2_rig_get(r, "/a");
	h2_rig_turn(r);
	for (unsigned i = 0; i < 10; i++)
		rig_way_head(h2_rig_way(r, "/a"), 103, HTTP_BODY_NONE, 0, "link", value);
	rig_way_head(h2_rig_way(r, "/a"), 200, HTTP_BODY_LENGTH, 0, "link", value);
	h2_rig_turn(r);
	c = h2_rig_conn(r)->h2->streams;
	assert_true(c->stream->n_heads <= 1 && !c->stream->answered);
	r->reads = SIZE_MAX;
	h2_rig_turn(r);
	assert_int_equal(s->n_informational, 10);
	assert_int_equal(s->status, 200);
	h2_rig_free(r);
}

static void an_idle_connection_is_told_to_go(void **state)
{
	struct h2_rig *r = h2_rig_new(true);
	struct rig_stream *s = h2_rig_get(r, "/a");

	h2_rig_turn(r);
	assert_int_equal(h2_rig_conn(r)->timer.pos, 0);
	rig_way_head(h2_rig_way(r, "/a"), 200, HTTP_BODY_LENGTH, 0, NULL, NULL);
	h2_rig_turn(r);
	assert_true(s->closed);
	assert_true(h2_rig_conn(r)->timer.pos > 0);
	net_on_timer(&r->e, h2_rig_conn(r)->timer.key);
	h2_rig_turn(r);
	assert_int_equal(r->goaway, NGHTTP2_NO_ERROR);
	assert_null(h2_rig_conn(r));
	assert_int_equal(r->n_faults, 0);
	h2_rig_free(r);
}

static void the_end_of_the_connection_ends_its_streams(void **state)
{
	struct h2_rig *r = h2_rig_new(true);

	(void)h2_rig_open(r, "POST", "/a", 0, NULL);
	(void)h2_rig_get(r, "/b");
	h2_rig_turn(r);
	r->decide = 0;
	(void)h2_rig_get(r, "/c");
	h2_rig_turn(r);
	conn_over(&r->e, h2_rig_conn(r));
	h2_rig_turn(r);
	assert_true(h2_rig_way(r, "/a")->eof && h2_rig_way(r, "/b")->eof);
	assert_int_equal(r->e.net->n_conns, 1);
	h2_rig_verdict(r, 0, true);
	h2_rig_turn(r);
	assert_int_equal(r->e.net->n_conns, 0);
	h2_rig_free(r);
}

static void pings_are_answered(void **state)
{
	struct h2_rig *r = h2_rig_new(true);

	assert_int_equal(nghttp2_submit_ping(r->client, 0, NULL), 0);
	h2_rig_turn(r);
	assert_int_equal(r->n_frames[NGHTTP2_PING], 1);
	h2_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_and_its_answer),
		cmocka_unit_test(a_body_has_its_length),
		cmocka_unit_test(both_directions_at_once),
		cmocka_unit_test(an_answer_without_content_is_one_frame),
		cmocka_unit_test(informational_heads_pass),
		cmocka_unit_test(head_has_no_content),
		cmocka_unit_test(a_no_is_of_one_stream),
		cmocka_unit_test(a_stale_connection_ends_with_its_streams),
		cmocka_unit_test(coalescing_is_misdirected),
		cmocka_unit_test(refusals_of_egress_are_said),
		cmocka_unit_test(a_cut_is_a_reset),
		cmocka_unit_test(an_answer_out_of_order_is_none),
		cmocka_unit_test(the_guest_cancels),
		cmocka_unit_test(an_early_answer),
		cmocka_unit_test(a_hundred_at_once),
		cmocka_unit_test(who_does_not_read_stops_only_itself),
		cmocka_unit_test(cancelled_bytes_come_back),
		cmocka_unit_test(a_guest_that_does_not_read),
		cmocka_unit_test(heads_wait_for_the_guest),
		cmocka_unit_test(an_idle_connection_is_told_to_go),
		cmocka_unit_test(the_end_of_the_connection_ends_its_streams),
		cmocka_unit_test(pings_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
