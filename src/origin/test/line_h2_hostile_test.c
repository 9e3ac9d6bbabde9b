/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 between a real sbx-origin and verified, hostile servers. */
#include "line_h2_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nghttp2/nghttp2.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

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

/* One long field in the table, and then one byte per reference to it. */
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

/* ---- a reset that is sent while its neighbour is served ---- */

/* Waits until the test calls wake(). */
static void pause_script(void)
{
	(void)raise(SIGSTOP);
}

static void wait_for_pause(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

static void wake(pid_t pid)
{
	assert_int_equal(kill(pid, SIGCONT), 0);
}

static void read_bytes(SSL *ssl, size_t n)
{
	static uint8_t bytes[16384];

	for (size_t at = 0; at < n;) {
		int r = SSL_read(ssl, bytes, (int)MIN(sizeof(bytes), n - at));

		if (r <= 0)
			_exit(7);
		at += (size_t)r;
	}
}

/* SETTINGS with a window that no upload of the test fills. */
static void open_windows(SSL *ssl)
{
	(void)!h2_rig_frame(ssl, NGHTTP2_SETTINGS, 0, 0, "\0\4\x0f\0\0\0", 6);
	(void)!h2_rig_frame(ssl, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x0f\0\0\0", 4);
}

/* nghttp2 accepts this head, and origin rejects it. */
static void refused_head(SSL *ssl, uint32_t stream)
{
	const char *const twice[] = {":status", "200", "content-encoding", "gzip, gzip"};

	send_head(ssl, stream, 0, twice, 2);
}

static void room_and_refused_head(SSL *ssl, uint32_t stream)
{
	open_windows(ssl);
	pause_script(); /* until the upload is stuck, and then origin sleeps */
	read_bytes(ssl, 140000);
	refused_head(ssl, stream);
	pause_script(); /* until origin is awake: it finds the room and the head together */
}

/* Sends without blocking until nothing is accepted for a while; returns the missing length of the
 * last frame. */
static size_t upload_until_stuck(int fd)
{
	static uint8_t frame[16 + 16384];
	struct wr wr = wr_init(frame, sizeof(frame));
	unsigned n_stuck = 0;
	size_t at = 0, n;

	assert_int_equal(canon_put_data_head(&wr, 1, 16384), 0);
	for (n = wr.n + 16384; n_stuck < 20;) {
		ssize_t r = send(fd, frame + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_true(r > 0 || errno == EAGAIN);
		at = r > 0 ? (at + (size_t)r) % n : at;
		n_stuck = r > 0 ? 0 : n_stuck + 1;
		if (r <= 0)
			(void)usleep(10000);
	}
	return at ? n - at : 0;
}

/* Regression: h2_settle served the upload, which sent the reset of the other stream, and continued
 * with the stream that nghttp2 had closed and origin had freed. */
static void a_reset_sent_while_a_neighbour_is_served_frees_nothing_in_use(void **state)
{
	struct rig *r = rig_new();
	int b = rig_ask(r, &(struct rig_req){.path = "/b"}), put;
	pid_t pid = h2_rig_attack(r, room_and_refused_head);
	struct rig_answer a;

	rig_give_value(r, RIG_VALUE);
	wait_for_pause(pid);
	put = rig_ask(
		r, &(struct rig_req){.path = "/a", .method = "PUT", .body = HTTP_BODY_CHUNKED});
	(void)upload_until_stuck(put);
	assert_int_equal(kill(r->pid, SIGSTOP), 0);
	wake(pid);
	wait_for_pause(pid);
	assert_int_equal(kill(r->pid, SIGCONT), 0);
	rig_read_answer(b, &a);
	assert_int_equal(a.status, 502);
	rig_answer_done(&a);
	wake(pid);
	(void)close(put);
	rig_until_closed(r, r->n_ids);
	(void)close(b);
	h2_rig_end(pid);
	b = rig_ask(r, &(struct rig_req){.path = "/dump"});
	pid = h2_rig_serve(r, NULL);
	rig_read_answer(b, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(b);
	h2_rig_end(pid);
	rig_free(r);
}

/* ---- a head in two parts ---- */

static size_t n_first_part; /* fields of it */

static void head_in_two_parts(SSL *ssl, uint32_t stream)
{
	static const char *const first[] = {":status", "200", "a", "b"};
	static const char *const rest[] = {"abcdefghijklmnop", "", "bcdefghijklmnopq", "",
		"cdefghijklmnopqr", "", "defghijklmnopqrs", "", "efghijklmnopqrst", "",
		"fghijklmnopqrstu", "", "ghijklmnopqrstuv", "", "hijklmnopqrstuvw", "x"};
	struct h2_rig_head frame = {0};
	uint8_t block[1024];

	(void)!h2_rig_frame(
		ssl, NGHTTP2_HEADERS, 0, stream, block, h2_rig_block(block, first, n_first_part));
	pause_script(); /* until there is a second request */
	while (frame.type != NGHTTP2_HEADERS || frame.stream == stream)
		if (!h2_rig_read_frame(ssl, &frame))
			_exit(7);
	(void)!h2_rig_frame(ssl, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, stream, block,
		h2_rig_block(block, rest, ARRAY_LEN(rest) / 2));
	(void)!h2_rig_frame(ssl, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, "x", 1);
	send_head(ssl, frame.stream, NGHTTP2_FLAG_END_STREAM, first, 1);
	pause_script();
}

/* The second request was built in the memory of the first one's head. */
static void a_request_leaves_a_head_that_is_still_coming_alone(void **state)
{
	for (n_first_part = 1; n_first_part <= 2; n_first_part++) {
		struct rig *r = rig_new();
		int fds[2] = {rig_ask(r, &(struct rig_req){.path = "/a"}), -1};
		pid_t pid = h2_rig_attack(r, head_in_two_parts);

		rig_give_value(r, RIG_VALUE);
		wait_for_pause(pid);
		(void)usleep(200000); /* origin has read the first part */
		fds[1] = rig_ask(r, &(struct rig_req){.path = "/b"});
		wake(pid);
		for (unsigned i = 0; i < 2; i++) {
			struct rig_answer a;

			rig_read_answer(fds[i], &a);
			assert_int_equal(a.status, 200);
			rig_answer_done(&a);
			(void)close(fds[i]);
		}
		wait_for_pause(pid);
		wake(pid);
		h2_rig_end(pid);
		rig_free(r);
	}
}

static void three_streams_at_most(SSL *ssl, uint32_t stream)
{
	struct h2_rig_head frame;

	(void)!h2_rig_frame(ssl, NGHTTP2_SETTINGS, 0, 0, "\0\3\0\0\0\3", 6);
	open_windows(ssl);
	pause_script();
	while (h2_rig_read_frame(ssl, &frame) &&
		!(frame.type == NGHTTP2_DATA && frame.flags & NGHTTP2_FLAG_END_STREAM))
		;
	pause_script(); /* the upload has ended, and the heads were handled before its end */
}

/* Such a stream is freed by nghttp2's close or by h2_sweep; otherwise it would count for the
 * lifetime of the line. */
static void requests_given_up_before_they_were_sent_leave_their_line(void **state)
{
	struct rig *r = rig_new();
	int put = rig_ask(
		r, &(struct rig_req){.path = "/a", .method = "PUT", .body = HTTP_BODY_CHUNKED});
	pid_t pid = h2_rig_attack(r, three_streams_at_most);
	static uint8_t rest[16384 + 16];
	size_t n_rest;
	int fd;

	rig_give_value(r, RIG_VALUE);
	wait_for_pause(pid);
	n_rest = upload_until_stuck(put);
	for (unsigned i = 0; i < 2; i++) {
		fd = rig_ask(r, &(struct rig_req){.path = "/never"});
		(void)usleep(50000);
		(void)close(fd);
		rig_until_closed(r, r->n_ids);
	}
	wake(pid);
	assert_int_equal(fd_write_all(put, rest, n_rest), 0);
	rig_send_end(put, NULL);
	wait_for_pause(pid);
	fd = rig_ask(r, &(struct rig_req){.path = "/later"});
	for (unsigned i = 0; i < 5; i++)
		(void)rig_next(r, 100);
	assert_int_equal(r->n_wants, 1); /* it found room on the line */
	(void)close(fd);
	(void)close(put);
	h2_rig_end(pid);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_servers_end_only_their_line),
		cmocka_unit_test(a_window_that_is_not_kept_ends_the_line),
		cmocka_unit_test(a_reset_sent_while_a_neighbour_is_served_frees_nothing_in_use),
		cmocka_unit_test(a_request_leaves_a_head_that_is_still_coming_alone),
		cmocka_unit_test(requests_given_up_before_they_were_sent_leave_their_line),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
