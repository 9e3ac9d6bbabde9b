/* HTTP/2 between a real sbx-origin and servers that are verified and hostile. */
#include "line_h2_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <nghttp2/nghttp2.h>
#include <cmocka.h>
#include "lib/base/clock.h"

#define MIB (1024 * 1024)
#define MAX_MEMORY (12 * MIB)

static void send_head(SSL *ssl, uint32_t stream, uint8_t flags, const char *const *pairs, size_t n)
{
	static uint8_t block[70000];

	(void)!h2_rig_frame(ssl, NGHTTP2_HEADERS, (uint8_t)(flags | NGHTTP2_FLAG_END_HEADERS),
		stream, block, h2_rig_block(block, pairs, n));
}

static void ping_flood(SSL *ssl, uint32_t stream)
{
	while (h2_rig_frame(ssl, NGHTTP2_PING, 0, 0, "12345678", 8))
		;
}

static void settings_flood(SSL *ssl, uint32_t stream)
{
	while (h2_rig_frame(ssl, NGHTTP2_SETTINGS, 0, 0, NULL, 0))
		;
}

static void empty_flood(SSL *ssl, uint32_t stream)
{
	const char *const ok[] = {":status", "200"};

	send_head(ssl, stream, 0, ok, 1);
	while (h2_rig_frame(ssl, NGHTTP2_DATA, 0, stream, NULL, 0))
		;
}

static void unknown_flood(SSL *ssl, uint32_t stream)
{
	while (h2_rig_frame(ssl, 0x77, 0, 0, "x", 1))
		;
}

static void window_flood(SSL *ssl, uint32_t stream)
{
	while (h2_rig_frame(ssl, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4))
		;
}

static void interim_flood(SSL *ssl, uint32_t stream)
{
	const char *const hint[] = {":status", "103", "link", "</a>"};

	for (size_t i = 0; i < 10000; i++)
		send_head(ssl, stream, 0, hint, 2);
}

static void continuation_flood(SSL *ssl, uint32_t stream)
{
	static uint8_t block[16384];
	const char *const ok[] = {":status", "200", "a", "b"};
	size_t n = h2_rig_block(block, ok, 2);

	(void)!h2_rig_frame(ssl, NGHTTP2_HEADERS, 0, stream, block, n);
	while (h2_rig_frame(ssl, NGHTTP2_CONTINUATION, 0, stream, block + 13, n - 13))
		;
}

/* One long field in the table, and then a byte for each time it is meant. */
static void hpack_bomb(SSL *ssl, uint32_t stream)
{
	static uint8_t block[20000];
	const char *const ok[] = {":status", "200"};
	size_t n = h2_rig_block(block, ok, 1);
	static char value[3800];
	const char *pair[2] = {"a", value};
	size_t at = n;

	memset(value, 'x', sizeof(value) - 1);
	n += h2_rig_block(block + n, pair, 1);
	block[at] = 0x40; /* and into the table */
	memset(block + n, 0xbe, 10000);
	(void)!h2_rig_frame(
		ssl, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, block, n + 10000);
}

static void push(SSL *ssl, uint32_t stream)
{
	(void)!h2_rig_frame(
		ssl, NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, stream, "\0\0\0\2\x82", 5);
}

static void other_stream(SSL *ssl, uint32_t stream)
{
	const char *const ok[] = {":status", "200"};

	send_head(ssl, stream + 2, 0, ok, 1);
}

static void not_http2(SSL *ssl, uint32_t stream)
{
	(void)SSL_write(ssl, "HTTP/1.1 200 OK\r\n\r\n", 19);
}

static void too_long_a_head(SSL *ssl, uint32_t stream)
{
	static char value[15000];
	const char *pairs[] = {":status", "200", "a", value};
	static uint8_t block[16384];
	size_t n;

	memset(value, 'x', sizeof(value) - 1);
	n = h2_rig_block(block, pairs, 2);
	(void)!h2_rig_frame(ssl, NGHTTP2_HEADERS, 0, stream, block, n);
	for (unsigned i = 0; i < 5; i++) {
		n = h2_rig_block(block, pairs + 2, 1);
		(void)!h2_rig_frame(ssl, NGHTTP2_CONTINUATION,
			i == 4 ? NGHTTP2_FLAG_END_HEADERS : 0, stream, block, n);
	}
}

static void bad_status(SSL *ssl, uint32_t stream)
{
	const char *const bad[] = {":status", "101"};

	send_head(ssl, stream, 0, bad, 1);
}

static void split_value(SSL *ssl, uint32_t stream)
{
	const char *const bad[] = {":status", "200", "a", "b\r\nset-cookie: c"};

	send_head(ssl, stream, NGHTTP2_FLAG_END_STREAM, bad, 2);
}

static void connection_field(SSL *ssl, uint32_t stream)
{
	const char *const bad[] = {":status", "200", "transfer-encoding", "chunked"};

	send_head(ssl, stream, NGHTTP2_FLAG_END_STREAM, bad, 2);
}

static void two_lengths(SSL *ssl, uint32_t stream)
{
	const char *const bad[] = {":status", "200", "content-length", "3", "content-length", "4"};

	send_head(ssl, stream, 0, bad, 3);
}

static void longer_than_said(SSL *ssl, uint32_t stream)
{
	const char *const ok[] = {":status", "200", "content-length", "3"};

	send_head(ssl, stream, 0, ok, 2);
	(void)!h2_rig_frame(ssl, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, "abcd", 4);
}

static void no_window(SSL *ssl, uint32_t stream)
{
	static uint8_t piece[16384];
	const char *const ok[] = {":status", "200"};

	send_head(ssl, stream, 0, ok, 1);
	for (size_t i = 0; i < 4096; i++)
		if (!h2_rig_frame(ssl, NGHTTP2_DATA, 0, stream, piece, sizeof(piece)))
			return;
}

static void hostile_servers_end_only_their_line(void **state)
{
	static const struct {
		const char *what;
		h2_rig_script script;
		bool may_begin; /* edge may have seen a head, and then a reset */
	} row[] = {
		{"pings", ping_flood},
		{"settings", settings_flood},
		{"empty frames", empty_flood, true},
		{"unknown frames", unknown_flood},
		{"windows", window_flood},
		{"interim answers", interim_flood, true},
		{"continuations", continuation_flood},
		{"hpack", hpack_bomb},
		{"push", push},
		{"a stream that nobody opened", other_stream},
		{"not HTTP/2", not_http2},
		{"a long head", too_long_a_head},
		{"101", bad_status},
		{"a line end in a value", split_value},
		{"transfer-encoding", connection_field},
		{"two lengths", two_lengths},
		{"longer than said", longer_than_said, true},
	};
	struct rig *r = rig_new();
	bool has_value = false;

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		int fd = rig_ask(r, &(struct rig_req){.path = "/x", .method = "PUT"});
		uint64_t begun = clock_mono_ms();
		struct rig_answer a;
		pid_t pid;

		print_message("%s\n", row[i].what);
		pid = h2_rig_attack(r, row[i].script);

		if (!has_value)
			rig_give_value(r, RIG_VALUE);
		has_value = true;
		rig_read_answer(fd, &a);
		while (a.status < 200 && !a.reset && !a.ended)
			assert_true(rig_read_frame(fd, &a));
		if (a.status != 502 && !(row[i].may_begin && a.reset))
			fail_msg("%s: %u", row[i].what, a.status);
		if (clock_mono_ms() - begun > 5000)
			fail_msg("%s took %llu ms", row[i].what,
				(unsigned long long)(clock_mono_ms() - begun));
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_BAD_ANSWER);
		assert_true(rig_memory(r) < MAX_MEMORY);
		rig_answer_done(&a);
		(void)close(fd);
		h2_rig_end(pid);
		rig_until_closed(r, r->n_ids);
	}
	rig_free(r);
}

/* More than the window, while edge does not read. */
static void a_window_that_is_not_kept_ends_the_line(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r, &(struct rig_req){.path = "/x"});
	pid_t pid = h2_rig_attack(r, no_window);
	struct rig_answer a;

	rig_give_value(r, RIG_VALUE);
	(void)usleep(500000);
	assert_true(rig_memory(r) < MAX_MEMORY);
	rig_read_answer(fd, &a);
	assert_true(a.reset);
	rig_answer_done(&a);
	(void)close(fd);
	h2_rig_end(pid);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_servers_end_only_their_line),
		cmocka_unit_test(a_window_that_is_not_kept_ends_the_line),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
