/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/edge_chan.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static int pair[2];
static struct ipc_msg msg;

static int setup(void **state)
{
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static void receive(uint16_t type, uint32_t id)
{
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.type, type);
	assert_int_equal(msg.id, id);
}

static void test_edge_to_keeper(void **state)
{
	char build[CHAN_MAX_BUILD], text[EDGE_MAX_TEXT];
	enum edge_reason reason;
	uint16_t status;

	msg.fd = -1;
	assert_int_equal(chan_send_hello(pair[0], "build 1"), 0);
	receive(EDGE_HELLO, 0);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, "build 1");
	assert_int_equal(chan_send_plain(pair[0], EDGE_READY, 0, -1), 0);
	receive(EDGE_READY, 0);
	assert_int_equal(chan_get_plain(&edge_chan, &msg, msg.type), 0);
	assert_int_equal(edge_send_opened(pair[0], 7, 404), 0);
	receive(EDGE_OPENED, 7);
	assert_int_equal(edge_get_opened(&msg, &status), 0);
	assert_int_equal(status, 404);
	assert_int_equal(edge_send_refused(pair[0], 8, EDGE_REASON_GONE), 0);
	receive(EDGE_REFUSED, 8);
	assert_int_equal(edge_get_refused(&msg, &reason), 0);
	assert_int_equal(reason, EDGE_REASON_GONE);
	assert_int_equal(chan_send_plain(pair[0], EDGE_CLOSED, 9, -1), 0);
	receive(EDGE_CLOSED, 9);
	assert_int_equal(chan_get_plain(&edge_chan, &msg, msg.type), 0);
	assert_int_equal(edge_send_lost(pair[0], "the guest broke the protocol"), 0);
	receive(EDGE_LOST, 0);
	assert_int_equal(edge_get_lost(&msg, text), 0);
	assert_string_equal(text, "the guest broke the protocol");
}

static void test_keeper_to_edge(void **state)
{
	const struct edge_config config = {.sandbox = "0123456789ab", .ready_ms = 2000};
	struct edge_config got;
	char path[EDGE_MAX_PATH];

	msg.fd = -1;
	assert_int_equal(edge_ask_config(pair[0], &config, 0), 0);
	receive(EDGE_CONFIG, 0);
	assert_int_equal(edge_get_config(&msg, &got), 0);
	assert_string_equal(got.sandbox, "0123456789ab");
	assert_int_equal(got.ready_ms, 2000);
	assert_true(msg.fd > 2 && fcntl(msg.fd, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(edge_ask_open(pair[0], 5, "/exec", 0), 0);
	receive(EDGE_OPEN, 5);
	assert_int_equal(edge_get_open(&msg, path), 0);
	assert_string_equal(path, "/exec");
}

/* A boot's 90 s. With a factor above 6 edge refused its configuration, and no sandbox started. */
static void the_longest_limit_of_a_slow_machine_is_taken(void **state)
{
	const struct edge_config config = {
		.sandbox = "0123456789ab", .ready_ms = 90000 * CLOCK_MAX_FACTOR};
	struct edge_config got;

	msg.fd = -1;
	assert_int_equal(edge_ask_config(pair[0], &config, 0), 0);
	receive(EDGE_CONFIG, 0);
	assert_int_equal(edge_get_config(&msg, &got), 0);
	assert_int_equal(got.ready_ms, config.ready_ms);
}

static struct edge_ask sample_ask(void)
{
	return (struct edge_ask){.kind = EDGE_ASK_HTTP,
		.via = EDGE_VIA_TRANSPARENT,
		.proto = EDGE_PROTO_HTTP,
		.host = "a.example",
		.port = 8080,
		.method = "POST",
		.target = "/a/b?c=d"};
}

static void test_ask_and_verdict(void **state)
{
	struct edge_ask ask = sample_ask(), got;
	struct edge_verdict verdict = {.count = 7,
				    .rule = "*.example",
				    .reason = "because",
				    .sandbox = "demo"},
			    back;

	msg.fd = -1;
	assert_int_equal(edge_send_ask(pair[0], 12, &ask), 0);
	receive(EDGE_ASK, 12);
	assert_int_equal(edge_get_ask(&msg, &got), 0);
	assert_int_equal(got.kind, EDGE_ASK_HTTP);
	assert_int_equal(got.via, EDGE_VIA_TRANSPARENT);
	assert_int_equal(got.proto, EDGE_PROTO_HTTP);
	assert_string_equal(got.host, "a.example");
	assert_int_equal(got.port, 8080);
	assert_string_equal(got.method, "POST");
	assert_string_equal(got.target, "/a/b?c=d");
	assert_string_equal(got.fault, "");
	assert_int_equal(chan_send_plain(pair[0], EDGE_NET, 0, 0), 0);
	receive(EDGE_NET, 0);
	assert_int_equal(chan_get_plain(&edge_chan, &msg, EDGE_NET), 0);
	assert_int_equal(edge_answer_ask(pair[0], 12, &verdict, -1), 0);
	receive(EDGE_VERDICT, 12);
	assert_int_equal(edge_get_verdict(&msg, &back), 0);
	assert_false(back.allowed);
	assert_int_equal(back.count, 7);
	assert_string_equal(back.rule, "*.example");
	assert_string_equal(back.reason, "because");
	assert_string_equal(back.sandbox, "demo");
	/* A refusal with a way out would be none. */
	assert_int_equal(edge_answer_ask(pair[0], 13, &verdict, 0), 0);
	receive(EDGE_VERDICT, 13);
	assert_int_equal(edge_get_verdict(&msg, &back), -EBADMSG);
	verdict.allowed = true;
	assert_int_equal(edge_answer_ask(pair[0], 14, &verdict, 0), 0);
	receive(EDGE_VERDICT, 14);
	assert_int_equal(edge_get_verdict(&msg, &back), 0);
	assert_true(back.allowed && msg.fd > 2);
}

/* The longest of everything fits, and one byte more or less than what was sent does not decode. */
static void test_ask_bounds(void **state)
{
	struct edge_ask ask = sample_ask(), got;
	size_t whole;

	memset(ask.host, 'h', sizeof(ask.host) - 1);
	memset(ask.method, 'M', sizeof(ask.method) - 1);
	memset(ask.target, '/', sizeof(ask.target) - 1);
	memset(ask.fault, 'f', sizeof(ask.fault) - 1);
	msg.fd = -1;
	assert_int_equal(edge_send_ask(pair[0], 1, &ask), 0);
	receive(EDGE_ASK, 1);
	assert_int_equal(edge_get_ask(&msg, &got), 0);
	assert_int_equal(strlen(got.target), EDGE_MAX_TARGET - 1);
	whole = msg.n;
	for (msg.n = 0; msg.n < whole; msg.n++)
		assert_int_equal(edge_get_ask(&msg, &got), -EBADMSG);
	msg.body[whole] = 0;
	msg.n = whole + 1;
	assert_int_equal(edge_get_ask(&msg, &got), -EBADMSG);
}

static struct ticket_request request(const char *path, const char *query)
{
	return (struct ticket_request){.tls = true,
		.method = slice_from_str("GET"),
		.host = slice_from_str("a.test"),
		.port = 443,
		.path = slice_from_str(path),
		.has_query = query != NULL,
		.query = slice_from_str(query ? query : "")};
}

static void test_an_ask_becomes_the_ticket_of_its_whole_target(void **state)
{
	static const struct {
		const char *target, *path, *query;
	} rows[] = {
		{"/x", "/x", NULL}, {"/x?", "/x", ""}, {"/x?y?z", "/x", "y?z"}, {"*", "*", NULL}};
	static struct edge_ask ask = {
		.kind = EDGE_ASK_HTTP, .tls = true, .host = "a.test", .port = 443, .method = "GET"};
	struct ticket_request req;
	struct ticket ticket;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		req = request(rows[i].path, rows[i].query);

		assert_int_equal(str_copy(ask.target, sizeof(ask.target), rows[i].target), 0);
		edge_ask_ticket(&ask, &ticket);
		assert_true(ticket_is_for(&ticket, &req));
	}
	/* the last byte of the longest counts */
	memset(ask.target, 'a', sizeof(ask.target) - 1);
	edge_ask_ticket(&ask, &ticket);
	req = request(ask.target, NULL);
	assert_true(ticket_is_for(&ticket, &req));
	ask.target[sizeof(ask.target) - 2] = 'b';
	assert_false(ticket_is_for(&ticket, &req));
	/* and so do the headers that rules name */
	req = request("/x", NULL);
	assert_int_equal(str_copy(ask.target, sizeof(ask.target), "/x"), 0);
	assert_int_equal(str_copy(ask.named, sizeof(ask.named), "x-a:1\n"), 0);
	edge_ask_ticket(&ask, &ticket);
	assert_false(ticket_is_for(&ticket, &req));
	req.named = slice_from_str(ask.named);
	assert_true(ticket_is_for(&ticket, &req));
}

static void test_asks_that_cannot_be(void **state)
{
	static const struct {
		const char *what;
		struct edge_ask ask;
		int r;
	} rows[] = {
		{"tunnel", {.host = "a", .port = 1}, 0},
		{"tunnel without a port", {.host = "a"}, -EBADMSG},
		{"tunnel without a host", {.port = 1}, -EBADMSG},
		{"tunnel with a method", {.host = "a", .port = 1, .method = "GET"}, -EBADMSG},
		{"tunnel with a path", {.host = "a", .port = 1, .target = "/"}, -EBADMSG},
		{"tunnel with a query type", {.host = "a", .port = 1, .qtype = 1}, -EBADMSG},
		{"http", {.kind = EDGE_ASK_HTTP, .host = "a", .port = 1, .method = "G"}, 0},
		{"http without a method", {.kind = EDGE_ASK_HTTP, .host = "a", .port = 1},
			-EBADMSG},
		{"dns", {.kind = EDGE_ASK_DNS, .host = "a", .qtype = 28}, 0},
		{"connect", {.kind = EDGE_ASK_CONNECT, .host = "a", .port = 443}, 0},
		{"connect without a port", {.kind = EDGE_ASK_CONNECT, .host = "a"}, -EBADMSG},
		{"connect without a host", {.kind = EDGE_ASK_CONNECT, .port = 1}, -EBADMSG},
		{"connect with a method",
			{.kind = EDGE_ASK_CONNECT, .host = "a", .port = 1, .method = "GET"},
			-EBADMSG},
		{"agent", {.kind = EDGE_ASK_AGENT}, 0},
		{"agent with a host", {.kind = EDGE_ASK_AGENT, .host = "a"}, -EBADMSG},
		{"agent with a port", {.kind = EDGE_ASK_AGENT, .port = 22}, -EBADMSG},
		{"agent with a fault", {.kind = EDGE_ASK_AGENT, .fault = "x"}, -EBADMSG},
		{"dns with a port", {.kind = EDGE_ASK_DNS, .host = "a", .port = 53}, -EBADMSG},
		{"fault of nothing known", {.fault = "why"}, 0},
		{"host with a line end", {.host = "a\n", .port = 1}, -EBADMSG},
		{"fault with an escape", {.fault = "\x1b[2J"}, -EBADMSG},
		{"target with a high byte",
			{.kind = EDGE_ASK_HTTP,
				.host = "a",
				.port = 1,
				.method = "G",
				.target = "/\xff"},
			-EBADMSG},
		{"http with headers",
			{.kind = EDGE_ASK_HTTP,
				.host = "a",
				.port = 1,
				.method = "G",
				.wants_id = 9,
				.named = "a:b\n"},
			0},
		{"http with none of the headers",
			{.kind = EDGE_ASK_HTTP,
				.host = "a",
				.port = 1,
				.method = "G",
				.wants_id = 9},
			0},
		{"http with headers that were not wanted",
			{.kind = EDGE_ASK_HTTP,
				.host = "a",
				.port = 1,
				.method = "G",
				.named = "a:b\n"},
			-EBADMSG},
		{"tunnel with headers", {.host = "a", .port = 1, .wants_id = 9}, -EBADMSG},
		{"no kind", {.kind = EDGE_N_ASK_KINDS, .host = "a", .port = 1}, -EBADMSG},
		{"no way", {.via = EDGE_N_VIAS, .host = "a", .port = 1}, -EBADMSG},
		{"no protocol", {.proto = EDGE_N_PROTOS, .host = "a", .port = 1}, -EBADMSG},
	};
	struct edge_ask got;

	msg.fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(edge_send_ask(pair[0], 1, &rows[i].ask), 0);
		receive(EDGE_ASK, 1);
		if (edge_get_ask(&msg, &got) != rows[i].r)
			fail_msg("%s", rows[i].what);
	}
}

static void test_long_text_is_cut_or_refused(void **state)
{
	char text[400], got[EDGE_MAX_TEXT];

	memset(text, 'x', sizeof(text));
	text[399] = 0;
	msg.fd = -1;
	assert_int_equal(edge_send_lost(pair[0], text), 0);
	receive(EDGE_LOST, 0);
	assert_int_equal(edge_get_lost(&msg, got), 0);
	assert_int_equal(strlen(got), EDGE_MAX_TEXT - 1);
	assert_int_equal(chan_send_hello(pair[0], text), -EMSGSIZE);
	assert_int_equal(edge_ask_open(pair[0], 1, text, 0), -EMSGSIZE);
}

/* Decodes by type, as a receiver does. */
static int decode(const struct ipc_msg *m)
{
	char text[EDGE_MAX_TEXT];
	static struct edge_ask ask;
	struct edge_verdict verdict;
	struct edge_config config;
	struct edge_ca ca;
	enum edge_reason reason;
	uint16_t u16;

	switch (m->type) {
	case EDGE_HELLO:
		return chan_get_hello(m, text);
	case EDGE_CONFIG:
		return edge_get_config(m, &config);
	case EDGE_OPEN:
		return edge_get_open(m, text);
	case EDGE_OPENED:
		return edge_get_opened(m, &u16);
	case EDGE_REFUSED:
		return edge_get_refused(m, &reason);
	case EDGE_LOST:
		return edge_get_lost(m, text);
	case EDGE_NET:
	case EDGE_CHANNEL:
		return chan_get_plain(&edge_chan, m, m->type);
	case EDGE_ASK:
		return edge_get_ask(m, &ask);
	case EDGE_VERDICT:
		return edge_get_verdict(m, &verdict);
	case EDGE_CA:
		return edge_get_ca(m, &ca);
	default:
		return chan_get_plain(&edge_chan, m, m->type);
	}
}

#define BODY(text) text, sizeof(text) - 1

/* No wants; no effect, instead, command and wants. */
#define ASK_END "\0\0\0\0\0\0"
#define STREAM_END "\0\0\0\0\0\0\0\0" /* channel, stream */
#define WANTS_END "\0\0\0\0\0\0\0\0\0\0\0\0" STREAM_END
#define VERDICT_END "\0\0" WANTS_END

static const struct {
	const char *what;
	uint16_t type;
	uint32_t id;
	bool fd;
	const char *body;
	size_t n;
	int r;
} rows[] = {
	{"good hello", EDGE_HELLO, 0, false, BODY("\2\0b1"), 0},
	{"hello with an id", EDGE_HELLO, 1, false, BODY("\2\0b1"), -EBADMSG},
	{"hello with an fd", EDGE_HELLO, 0, true, BODY("\2\0b1"), -EBADMSG},
	{"hello cut", EDGE_HELLO, 0, false, BODY("\2\0b"), -EBADMSG},
	{"hello with a NUL", EDGE_HELLO, 0, false, BODY("\2\0b\0"), -EBADMSG},
	{"hello and more", EDGE_HELLO, 0, false, BODY("\2\0b1x"), -EBADMSG},
	{"good config", EDGE_CONFIG, 0, true, BODY("\1\0a\1\0\0\0\1\0k"), 0},
	{"config without fd", EDGE_CONFIG, 0, false, BODY("\1\0a\1\0\0\0\0\0"), -EBADMSG},
	{"config that never ends", EDGE_CONFIG, 0, true, BODY("\1\0a\0\0\0\0\0\0"), -EBADMSG},
	{"config of a year", EDGE_CONFIG, 0, true, BODY("\1\0a\0\0\0\x7f\0\0"), -EBADMSG},
	{"good open", EDGE_OPEN, 3, true, BODY("\2\0/x"), 0},
	{"open without fd", EDGE_OPEN, 3, false, BODY("\2\0/x"), -EBADMSG},
	{"open of no path", EDGE_OPEN, 3, true, BODY("\0\0"), -EBADMSG},
	{"open of a relative path", EDGE_OPEN, 3, true, BODY("\2\0xx"), -EBADMSG},
	{"open with a line end", EDGE_OPEN, 3, true, BODY("\3\0/\nx"), -EBADMSG},
	{"good opened", EDGE_OPENED, 3, false, BODY("\xc8\0"), 0},
	{"opened with status 199", EDGE_OPENED, 3, false, BODY("\xc7\0"), -EBADMSG},
	{"opened with status 600", EDGE_OPENED, 3, false, BODY("\x58\2"), -EBADMSG},
	{"opened with an fd", EDGE_OPENED, 3, true, BODY("\xc8\0"), -EBADMSG},
	{"good refused", EDGE_REFUSED, 3, false, BODY("\3"), 0},
	{"refused for no reason", EDGE_REFUSED, 3, false, BODY("\4"), -EBADMSG},
	{"good lost", EDGE_LOST, 0, false, BODY("\2\0ab"), 0},
	{"lost with escape", EDGE_LOST, 0, false, BODY("\2\0a\x1b"), -EBADMSG},
	{"good ready", EDGE_READY, 0, false, BODY(""), 0},
	{"ready with fields", EDGE_READY, 0, false, BODY("x"), -EBADMSG},
	{"ready with an fd", EDGE_READY, 0, true, BODY(""), -EBADMSG},
	{"ready with an id", EDGE_READY, 9, false, BODY(""), -EBADMSG},
	{"good closed", EDGE_CLOSED, 9, false, BODY(""), 0},
	{"closed with an fd", EDGE_CLOSED, 9, true, BODY(""), -EBADMSG},
	{"good net", EDGE_NET, 0, true, BODY(""), 0},
	{"net without a stream", EDGE_NET, 0, false, BODY(""), -EBADMSG},
	{"net with an id", EDGE_NET, 1, true, BODY(""), -EBADMSG},
	{"net with fields", EDGE_NET, 0, true, BODY("x"), -EBADMSG},
	{"good channel", EDGE_CHANNEL, 3, true, BODY(""), 0},
	{"channel without a stream", EDGE_CHANNEL, 3, false, BODY(""), -EBADMSG},
	{"channel with fields", EDGE_CHANNEL, 3, true, BODY("x"), -EBADMSG},
	{"good ask", EDGE_ASK, 5, false, BODY("\0\0\0\1\0a\1\0\0\0\0\0\0\0\0\0\0" ASK_END), 0},
	{"tunnel inside TLS that is open", EDGE_ASK, 5, false,
		BODY("\0\0\0\1\0a\1\0\0\0\1\0\0\0\0\0\0" ASK_END), -EBADMSG},
	{"ask with an fd", EDGE_ASK, 5, true, BODY("\0\0\0\1\0a\1\0\0\0\0\0\0\0\0\0\0" ASK_END),
		-EBADMSG},
	{"ask inside TLS in a way that is none", EDGE_ASK, 5, false,
		BODY("\1\0\0\1\0a\1\0\0\0\2\1\0G\0\0\0\0" ASK_END), -EBADMSG},
	{"good verdict", EDGE_VERDICT, 5, false, BODY("\0\0\0\1\0\0\0\0\0\0\0\0\0" VERDICT_END), 0},
	{"pending verdict", EDGE_VERDICT, 5, false,
		BODY("\0\0\0\1\0\0\0\0\0\0\0\0\0\4\0K7QD" WANTS_END), 0},
	{"allowed and pending", EDGE_VERDICT, 5, false,
		BODY("\1\0\0\1\0\0\0\0\0\0\0\0\0\4\0K7QD" WANTS_END), -EBADMSG},
	{"good GONE", EDGE_GONE, 5, false, BODY(""), 0},
	{"GONE with a field", EDGE_GONE, 5, false, BODY("x"), -EBADMSG},
	{"verdict that wants headers", EDGE_VERDICT, 5, false,
		BODY("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0a\1\0\0\0" STREAM_END), 0},
	{"yes that wants headers", EDGE_VERDICT, 5, false,
		BODY("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0a\1\0\0\0" STREAM_END),
		-EBADMSG},
	{"wants without an id", EDGE_VERDICT, 5, false,
		BODY("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0a\0\0\0\0" STREAM_END),
		-EBADMSG},
	{"good opened one", EDGE_VERDICT, 5, false, BODY("\1\1\0\0\0\0\0\0\0\0\0\0\0" VERDICT_END),
		0},
	{"opened and a way out", EDGE_VERDICT, 5, true,
		BODY("\1\1\0\0\0\0\0\0\0\0\0\0\0" VERDICT_END), -EBADMSG},
	{"opened and refused", EDGE_VERDICT, 5, false,
		BODY("\0\1\0\1\0\0\0\0\0\0\0\0\0" VERDICT_END), -EBADMSG},
	{"good stream", EDGE_VERDICT, 5, false,
		BODY("\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0"), 0},
	{"stream of no channel", EDGE_VERDICT, 5, false,
		BODY("\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0"),
		-EBADMSG},
	{"refused, and a stream", EDGE_VERDICT, 5, false,
		BODY("\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0"),
		-EBADMSG},
	{"stream and socket", EDGE_VERDICT, 5, true,
		BODY("\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0"),
		-EBADMSG},
	{"verdict of maybe", EDGE_VERDICT, 5, false, BODY("\2\0\0\1\0\0\0\0\0\0\0\0\0" VERDICT_END),
		-EBADMSG},
	{"no with a way out", EDGE_VERDICT, 5, true, BODY("\0\0\0\1\0\0\0\0\0\0\0\0\0" VERDICT_END),
		-EBADMSG},
	{"no that no rule helps", EDGE_VERDICT, 5, false,
		BODY("\0\0\1\1\0\0\0\0\0\0\0\0\0" VERDICT_END), 0},
	{"yes that no rule helps", EDGE_VERDICT, 5, false,
		BODY("\1\0\1\1\0\0\0\0\0\0\0\0\0" VERDICT_END), -EBADMSG},
	{"good CA", EDGE_CA, 0, false, BODY("\2\0p\n\1\0k"), 0},
	{"CA without a key", EDGE_CA, 0, false, BODY("\2\0p\n\0\0"), -EBADMSG},
	{"CA without a certificate", EDGE_CA, 0, false, BODY("\0\0\1\0k"), -EBADMSG},
	{"CA with a line that does not end", EDGE_CA, 0, false, BODY("\2\0pp\1\0k"), -EBADMSG},
	{"CA with an escape", EDGE_CA, 0, false, BODY("\2\0\x1b\n\1\0k"), -EBADMSG},
	{"CA with an fd", EDGE_CA, 0, true, BODY("\2\0p\n\1\0k"), -EBADMSG},
	{"no type", 0, 0, false, BODY(""), -EBADMSG},
	{"unknown type", EDGE_N_MSGS, 0, false, BODY(""), -EBADMSG},
};

static void test_strict(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		msg = (struct ipc_msg){
			.type = rows[i].type, .id = rows[i].id, .n = rows[i].n, .fd = -1};
		memcpy(msg.body, rows[i].body, rows[i].n);
		msg.fd = rows[i].fd ? 1000 : -1;
		if (decode(&msg) != rows[i].r)
			fail_msg("%s: %d", rows[i].what, decode(&msg));
		msg.fd = -1;
	}
}

/* The table of proto/PROTOCOL.ipc, written out a second time by hand. */
static void test_phases(void **state)
{
	static const char *const keeper[EDGE_N_PHASES] = {
		[EDGE_PHASE_START] = ".................",
		[EDGE_PHASE_CONFIG] = ".C...............",
		[EDGE_PHASE_CONNECT] = "...........N.V..C",
		[EDGE_PHASE_RUN] = "...O.......N.V..C",
		[EDGE_PHASE_END] = ".................",
	};
	static const char *const edge[EDGE_N_PHASES] = {
		[EDGE_PHASE_START] = "H................",
		[EDGE_PHASE_CONFIG] = ".................",
		[EDGE_PHASE_CONNECT] = "..R......L..A.CG.",
		[EDGE_PHASE_RUN] = "....ORC..L..A..G.",
		[EDGE_PHASE_END] = ".................",
	};

	assert_int_equal(strlen(edge[EDGE_PHASE_RUN]), EDGE_N_MSGS - 1);
	for (enum edge_phase p = 0; p < EDGE_N_PHASES; p++) {
		for (uint16_t t = 1; t < EDGE_N_MSGS; t++) {
			assert_int_equal(chan_allows(&edge_chan, p, CHAN_FROM_KEEPER, t),
				keeper[p][t - 1] != '.');
			assert_int_equal(chan_allows(&edge_chan, p, CHAN_FROM_WORKER, t),
				edge[p][t - 1] != '.');
		}
		assert_false(chan_allows(&edge_chan, p, CHAN_FROM_WORKER, 0));
		assert_false(chan_allows(&edge_chan, p, CHAN_FROM_KEEPER, 0));
		assert_false(chan_allows(&edge_chan, p, CHAN_FROM_WORKER, EDGE_N_MSGS));
		assert_false(chan_allows(&edge_chan, p, CHAN_FROM_KEEPER, 65535));
	}
	assert_int_equal(chan_after(&edge_chan, EDGE_PHASE_START, EDGE_HELLO), EDGE_PHASE_CONFIG);
	assert_int_equal(
		chan_after(&edge_chan, EDGE_PHASE_CONFIG, EDGE_CONFIG), EDGE_PHASE_CONNECT);
	assert_int_equal(chan_after(&edge_chan, EDGE_PHASE_CONNECT, EDGE_READY), EDGE_PHASE_RUN);
	assert_int_equal(chan_after(&edge_chan, EDGE_PHASE_RUN, EDGE_OPEN), EDGE_PHASE_RUN);
	assert_int_equal(chan_after(&edge_chan, EDGE_PHASE_RUN, EDGE_LOST), EDGE_PHASE_END);
}

static void test_reasons_have_words(void **state)
{
	for (enum edge_reason r = 0; r < EDGE_N_REASONS; r++)
		assert_true(strlen(edge_reason_text(r)) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_edge_to_keeper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keeper_to_edge, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_longest_limit_of_a_slow_machine_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ask_and_verdict, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ask_bounds, setup, teardown),
		cmocka_unit_test(test_an_ask_becomes_the_ticket_of_its_whole_target),
		cmocka_unit_test_setup_teardown(test_asks_that_cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_text_is_cut_or_refused, setup, teardown),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_reasons_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
