/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 in TLS to a real, sealed sbx-edge: OpenSSL and nghttp2 are the guest. */
#include "src/edge/tls/test/open_rig.h"

#include <nghttp2/nghttp2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define HOST NET_RIG_HOST
#define LARGE (8 * 1024 * 1024)
#define BLOCK 65536
#define MAX_REQUESTS 16

struct request {
	int32_t id;
	unsigned status;
	uint64_t n_got, n_sent, to_send;
	bool to_end, wrong, closed;
	uint32_t error;
	char trailer[64];
};

struct web {
	struct client *cl;
	nghttp2_session *session;
	struct request requests[MAX_REQUESTS];
	unsigned n_requests;
};

static struct request *find(struct web *w, int32_t id)
{
	for (unsigned i = 0; i < w->n_requests; i++)
		if (w->requests[i].id == id)
			return &w->requests[i];
	return NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
	struct request *q = find(user, frame->hd.stream_id);
	char text[32];

	if (slice_eq_str(slice_of(name, n_name), ":status") &&
		slice_to_cstr(slice_of(value, n_value), text, sizeof(text)) == 0)
		q->status = (unsigned)strtoul(text, NULL, 10);
	else if (slice_eq_str(slice_of(name, n_name), "grpc-status"))
		(void)!slice_to_cstr(slice_of(value, n_value), q->trailer, sizeof(q->trailer));
	return 0;
}

static int on_data(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	struct request *q = find(user, id);

	for (size_t i = 0; i < n; i++)
		q->wrong = q->wrong || p[i] != rig_pattern(q->n_got + i);
	q->n_got += n;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct request *q = find(user, id);

	q->closed = true;
	q->error = error;
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct request *q = source->ptr;

	n = MIN(n, q->to_send - q->n_sent);
	for (size_t i = 0; i < n; i++)
		buf[i] = rig_pattern(q->n_sent + i);
	q->n_sent += n;
	if (q->n_sent == q->to_send && q->to_end)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	else if (n == 0)
		return NGHTTP2_ERR_DEFERRED;
	return (ssize_t)n;
}

static struct web *web_new(struct net_rig *n)
{
	struct web *w = xcalloc(1, sizeof(*w));
	nghttp2_session_callbacks *cbs;
	const uint8_t *name;
	unsigned len;

	w->cl = client_up(n, &(struct client_plan){.alpn = "\x2h2\x8http/1.1"});
	SSL_get0_alpn_selected(w->cl->ssl, &name, &len);
	assert_true(slice_eq_str(slice_of(name, len), "h2"));
	assert_int_equal(nghttp2_session_callbacks_new(&cbs), 0);
	nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_close);
	assert_int_equal(nghttp2_session_client_new(&w->session, cbs, w), 0);
	nghttp2_session_callbacks_del(cbs);
	assert_int_equal(nghttp2_submit_settings(w->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
	return w;
}

static void web_free(struct web *w)
{
	nghttp2_session_del(w->session);
	client_free(w->cl);
	free(w);
}

/* Passes received data to nghttp2, and its output to TLS. */
static void web_pump(struct web *w)
{
	const uint8_t *p;
	ssize_t n;

	client_pump(w->cl);
	if (w->cl->n_got) {
		assert_int_equal(nghttp2_session_mem_recv(w->session, w->cl->got, w->cl->n_got),
			w->cl->n_got);
		w->cl->n_got = 0;
	}
	/* TLS accepts everything: pass no more than the wire carries. */
	for (unsigned i = 0; i < 16 && BIO_ctrl_pending(w->cl->to) < 65536 &&
			     (n = nghttp2_session_mem_send(w->session, &p)) > 0;
		i++)
		client_say(w->cl, p, (size_t)n);
	client_pump(w->cl);
}

#define web_until(w, cond)                                                                 \
	do {                                                                               \
		uint64_t _end = clock_mono_ms() + 60000;                                   \
		while (!(cond)) {                                                          \
			web_pump(w);                                                       \
			net_step((w)->cl->n, 5);                                           \
			web_pump(w);                                                       \
			if (clock_mono_ms() > _end)                                        \
				fail_msg("line %d: never came true: %s", __LINE__, #cond); \
		}                                                                          \
	} while (0)

static nghttp2_nv make_nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

/* to_send 0: no body. */
static struct request *web_open(
	struct web *w, const char *method, const char *path, const char *authority, bool has_body)
{
	struct request *q = &w->requests[w->n_requests++];
	const nghttp2_data_provider body = {.source = {.ptr = q}, .read_callback = read_body};
	const nghttp2_nv nva[] = {make_nv(":method", method), make_nv(":scheme", "https"),
		make_nv(":path", path), make_nv(":authority", authority),
		make_nv("te", "trailers")};

	assert_true(w->n_requests <= MAX_REQUESTS);
	q->id = nghttp2_submit_request(
		w->session, NULL, nva, ARRAY_LEN(nva), has_body ? &body : NULL, NULL);
	assert_true(q->id > 0);
	return q;
}

static struct net_way *web_allow(struct web *w, const char *method, const char *url)
{
	struct net_ask *a;
	struct net_way *way;

	web_until(w, net_asked(w->cl->n, EDGE_ASK_HTTP, HOST, 443));
	a = net_asked(w->cl->n, EDGE_ASK_HTTP, HOST, 443);
	assert_true(a->ask.tls);
	assert_string_equal(a->ask.method, method);
	assert_string_equal(a->ask.target, url);
	way = net_allow(w->cl->n, a);
	way->has_head = true;
	return way;
}

/* Frames of the request, its pattern checked. */
struct body {
	struct canon_reader rd;
	struct net_way *echo;
	uint64_t n;
	bool over;
};

static void on_frames(void *ctx, struct slice in)
{
	struct body *b = ctx;
	struct canon_frame frame;

	while (canon_reader_feed(&b->rd, &in, &frame) == 1) {
		for (size_t i = 0; frame.kind == CANON_DATA && i < frame.payload.n; i++)
			assert_int_equal(frame.payload.p[i], rig_pattern(b->n + i));
		b->n += frame.kind == CANON_DATA ? frame.payload.n : 0;
		b->over = b->over || frame.kind == CANON_END;
		if (b->echo && frame.kind == CANON_DATA)
			way_say_data(b->echo, frame.payload);
	}
}

static void watch_body(struct net_way *way, struct body *b)
{
	*b = (struct body){0};
	canon_reader_init(&b->rd);
	way->side.on_got = on_frames;
	way->side.ctx = b;
}

static void say_pattern(struct net_way *way, size_t n)
{
	AUTO_FREE uint8_t *p = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		p[i] = rig_pattern(i);
	for (size_t at = 0; at < n; at += BLOCK)
		way_say_data(way, slice_of(p + at, MIN(n - at, BLOCK)));
	way_say_end(way);
}

static void test_requests_of_one_connection(void **state)
{
	struct net_rig *n = net_new();
	struct web *w = web_new(n);
	struct request *a = web_open(w, "GET", "/a", HOST, false), *b;
	struct net_way *way = web_allow(w, "GET", "/a");

	web_until(w, way_has_request(way, "/a"));
	way_say_head(way, 200, HTTP_BODY_LENGTH, 100000);
	say_pattern(way, 100000);
	web_until(w, a->closed);
	assert_int_equal(a->status, 200);
	assert_int_equal(a->n_got, 100000);
	assert_true(!a->wrong && a->error == 0);
	/* A denial; the connection continues. */
	a = web_open(w, "GET", "/no", HOST, false);
	web_until(w, net_asked(n, EDGE_ASK_HTTP, HOST, 443));
	net_deny(n, net_asked(n, EDGE_ASK_HTTP, HOST, 443), "");
	web_until(w, a->closed);
	assert_int_equal(a->status, 403);
	/* Another host: blocked here, and reported. */
	b = web_open(w, "GET", "/a", "other.test", false);
	web_until(w, b->closed && net_faulted(n, "the target of the request is not"));
	assert_int_equal(b->status, 421);
	assert_true(n->asks[n->n_asks - 1].ask.tls);
	(void)web_open(w, "GET", "/last", HOST, false);
	(void)web_allow(w, "GET", "/last");
	assert_int_equal(n->asks[n->n_asks - 1].ask.wants_id, 5);
	web_free(w);
	net_free(n);
}

static void test_large_bodies_both_ways(void **state)
{
	struct net_rig *n = net_new();
	struct web *w = web_new(n);
	uint64_t began = clock_mono_ms();
	struct request *q = web_open(w, "PUT", "/up", HOST, true);
	struct net_way *way;
	struct body body;

	q->to_send = LARGE;
	q->to_end = true;
	way = web_allow(w, "PUT", "/up");
	watch_body(way, &body);
	web_until(w, body.over);
	assert_int_equal(body.n, LARGE);
	way_say_head(way, 200, HTTP_BODY_LENGTH, LARGE);
	say_pattern(way, LARGE);
	web_until(w, q->closed);
	assert_int_equal(q->n_got, LARGE);
	assert_true(!q->wrong && q->error == 0);
	print_message("8 MiB each way: %u ms\n", (unsigned)(clock_mono_ms() - began));
	canon_reader_done(&body.rd);
	web_free(w);
	net_free(n);
}

static void test_both_directions_at_once(void **state)
{
	struct net_rig *n = net_new();
	struct web *w = web_new(n);
	struct request *q = web_open(w, "POST", "/bidi", HOST, true);
	struct net_way *way = web_allow(w, "POST", "/bidi");
	struct body body;

	watch_body(way, &body);
	body.echo = way;
	way_say_head(way, 200, HTTP_BODY_CHUNKED, 0);
	web_until(w, q->status == 200);
	for (unsigned i = 1; i <= 20; i++) {
		q->to_send = i * 1000;
		(void)nghttp2_session_resume_data(w->session, q->id);
		web_until(w, q->n_got == i * 1000);
	}
	q->to_end = true;
	(void)nghttp2_session_resume_data(w->session, q->id);
	web_until(w, body.over);
	assert_false(q->closed);
	way_say_end(way);
	web_until(w, q->closed);
	assert_true(!q->wrong && q->error == 0);
	canon_reader_done(&body.rd);
	web_free(w);
	net_free(n);
}

/* The guest's program exits: its requests end too. */
static void test_the_end_of_the_guest(void **state)
{
	struct net_rig *n = net_new();
	struct web *w = web_new(n);
	struct net_way *way;

	(void)web_open(w, "POST", "/a", HOST, true);
	way = web_allow(w, "POST", "/a");
	web_until(w, way_has_request(way, "/a"));
	client_goodbye(w->cl);
	web_until(w, way->side.eof || way->gone);
	web_until(w, w->cl->goodbye);
	web_free(w);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_of_one_connection),
		cmocka_unit_test(test_large_bodies_both_ways),
		cmocka_unit_test(test_both_directions_at_once),
		cmocka_unit_test(test_the_end_of_the_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
