/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a separate process; the test is the guest at the other end of its streams. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "src/sbx/session/session_run.h"

#define WAIT_S 20

/* Seen by both processes. */
struct shared {
	volatile enum session_where where;
	volatile int r, left;
	volatile unsigned n_looks, n_wakes;
};

static struct {
	struct shared *sh;
	int listener, conn, in, out;
	pid_t pid;
	char path[64];
	struct exec_reader reader;
	struct bufq got; /* bytes of the stream that are not decoded yet */
	uint8_t frame[EXEC_MAX_PAYLOAD];
} t;

/* ---- the client's process ---- */

static enum session_where look(void *ctx)
{
	t.sh->n_looks++;
	return t.sh->where;
}

static int open_stream(void *ctx, struct problem *p)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", t.path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return fd;
}

static int wake(void *ctx, struct problem *p)
{
	t.sh->n_wakes++;
	t.sh->where = SESSION_RUNS;
	return 0;
}

static const char *starting;

static void be_client(const char *name, bool attach, int in, int out)
{
	static const struct session_link link = {.where = look, .open = open_stream, .wake = wake};
	char *argv[] = {(char *)"cat", NULL};
	struct session s = {
		.spec = {.flags = EXEC_F_STDIN, .argv = argv, .rows = 24, .cols = 80},
		.attach = attach,
		.starting = starting,
		.link = &link,
		.keys = {.n = 2, .key = {0x10, 0x11}},
		.in_fd = in,
		.out_fd = out,
		.err_fd = out,
	};
	struct problem p = {0};

	if (name) {
		s.spec.flags |= EXEC_F_TTY | EXEC_F_KEEP | EXEC_F_ATTACH;
		(void)snprintf(s.spec.session, sizeof(s.spec.session), "%s", name);
	}
	t.sh->r = session_run(&s, open_stream(NULL, &p), &p);
	t.sh->left = (int)s.left;
	_exit(0);
}

/* ---- the guest ---- */

static void accept_stream(void)
{
	struct timeval tv = {.tv_sec = WAIT_S};

	fd_close(&t.conn);
	exec_reader_done(&t.reader);
	exec_reader_init(&t.reader, EXEC_FROM_HOST);
	bufq_consume(&t.got, bufq_len(&t.got));
	t.conn = accept(t.listener, NULL, NULL);
	assert_true(t.conn >= 0);
	assert_int_equal(setsockopt(t.conn, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
}

static void begin(const char *name, bool attach)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval tv = {.tv_sec = WAIT_S};
	int in[2], out[2];

	memset(&t, 0, sizeof(t));
	t.conn = -1;
	bufq_init(&t.got, 1 << 20);
	t.sh = mmap(NULL, sizeof(*t.sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(t.sh != MAP_FAILED);
	(void)snprintf(t.path, sizeof(t.path), "/tmp/sbx-session-%d", (int)getpid());
	(void)unlink(t.path);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", t.path);
	t.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(t.listener, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(bind(t.listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(t.listener, 4), 0);
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	t.pid = fork();
	if (t.pid == 0) {
		(void)close(in[1]);
		(void)close(out[0]);
		be_client(name, attach, in[0], out[1]);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	t.in = in[1];
	t.out = out[0];
	accept_stream();
}

/* The client's result. */
static int finish(void)
{
	int r = waitpid(t.pid, NULL, 0);

	assert_int_equal(r, t.pid);
	r = t.sh->r;
	fd_close(&t.conn);
	fd_close(&t.listener);
	fd_close(&t.in);
	fd_close(&t.out);
	exec_reader_done(&t.reader);
	bufq_done(&t.got);
	(void)unlink(t.path);
	return r;
}

/* The next frame the client sends. */
static struct slice next(enum exec_type want)
{
	struct exec_frame f;

	for (;;) {
		struct slice run = bufq_peek(&t.got), left = run;
		int r = exec_reader_feed(&t.reader, &left, &f);
		uint8_t piece[4096];
		ssize_t n;

		assert_true(r >= 0);
		if (r == 1) {
			if (f.payload.n)
				memcpy(t.frame, f.payload.p, f.payload.n);
			bufq_consume(&t.got, run.n - left.n);
			if (f.type != want)
				fail_msg("frame %d instead of %d", (int)f.type, (int)want);
			return slice_of(t.frame, f.payload.n);
		}
		bufq_consume(&t.got, run.n - left.n);
		n = read(t.conn, piece, MIN(sizeof(piece), bufq_space(&t.got)));
		assert_true(n > 0);
		(void)!bufq_put(&t.got, slice_of(piece, (size_t)n));
	}
}

static void say_bytes(struct slice s)
{
	assert_int_equal(send(t.conn, s.p, s.n, MSG_NOSIGNAL), s.n);
}

static void say_queue(struct bufq *q)
{
	while (bufq_len(q)) {
		struct slice s = bufq_peek(q);

		say_bytes(s);
		bufq_consume(q, s.n);
	}
	bufq_done(q);
}

static void say(enum exec_type type, struct slice payload)
{
	struct bufq q;

	bufq_init(&q, EXEC_MAX_PAYLOAD + EXEC_HEADER);
	assert_int_equal(exec_put_frame(&q, type, payload), 0);
	say_queue(&q);
}

static void say_started(void)
{
	say(EXEC_STARTED, slice_of("\1\0\0\0", 4));
}

static void say_exit(uint8_t status)
{
	uint8_t b[2] = {0, status};

	say(EXEC_EXIT, slice_of(b, 2));
}

static void say_attached(uint64_t in_taken, uint64_t out_at, uint8_t flags)
{
	struct exec_attached a = {.pid = 1, .flags = flags, .in_taken = in_taken, .out_at = out_at};
	struct bufq q;

	bufq_init(&q, 64);
	assert_int_equal(exec_put_attached(&q, &a), 0);
	say_queue(&q);
}

static void type(const char *text)
{
	assert_int_equal(write(t.in, text, strlen(text)), strlen(text));
}

static void expect_out(const char *text)
{
	char buf[256] = "";
	size_t n = 0;
	ssize_t k;

	while (n < strlen(text) && (k = read(t.out, buf + n, strlen(text) - n)) > 0)
		n += (size_t)k;
	assert_string_equal(buf, text);
}

static void expect_in(const char *text)
{
	size_t n = 0;

	while (n < strlen(text)) {
		struct slice s = next(EXEC_STDIN);

		assert_true(s.n <= strlen(text) - n);
		assert_memory_equal(s.p, text + n, s.n);
		n += s.n;
	}
}

/* ---- tests ---- */

static void test_a_slow_start_is_said_until_the_first_byte(void **state)
{
	struct exec_spec spec;

	starting = "Slow Agent";
	begin(NULL, false);
	starting = NULL;
	assert_int_equal(exec_spec_decode(next(EXEC_SPEC), &spec), 0);
	exec_spec_done(&spec);
	expect_out("starting Slow Agent ...");
	say_started();
	say(EXEC_STDOUT, slice_from_str("abc"));
	say(EXEC_STDOUT, slice_from_str("def"));
	expect_out("\r\033[Kabcdef");
	say_exit(3);
	assert_int_equal(finish(), 3);
}

static void test_suspended_and_back_exactly(void **state)
{
	struct exec_attach a;
	struct exec_spec spec;

	begin(NULL, false);
	assert_int_equal(exec_spec_decode(next(EXEC_SPEC), &spec), 0);
	assert_true(spec.flags & EXEC_F_RESUME);
	say_started();
	type("hello");
	expect_in("hello");
	say(EXEC_STDOUT, slice_from_str("abc"));
	/* A partial frame, and then silence. */
	say_bytes(slice_of("\x11\x03\0\0d", 5));
	t.sh->where = SESSION_SUSPENDED;
	(void)shutdown(t.conn, SHUT_RDWR);
	while (t.sh->n_looks < 3)
		(void)usleep(10000);
	t.sh->where = SESSION_RUNS;
	accept_stream();
	assert_int_equal(exec_get_attach(next(EXEC_ATTACH), &a), 0);
	assert_true(a.resume && a.out_at == 7 && !a.session[0]);
	assert_memory_equal(a.token, spec.token, EXEC_TOKEN);
	/* Two bytes had been accepted: the rest is sent again, nothing twice. */
	say_attached(2, 7, 0);
	expect_in("llo");
	say(EXEC_STDOUT, slice_from_str("def"));
	fd_close(&t.in);
	(void)next(EXEC_STDIN_EOF);
	/* With a regular notice this time, and the end of the input was accepted. */
	say(EXEC_DETACHED, slice_of("\3", 1));
	(void)shutdown(t.conn, SHUT_RDWR);
	accept_stream();
	assert_int_equal(exec_get_attach(next(EXEC_ATTACH), &a), 0);
	assert_int_equal(a.out_at, 14);
	say_attached(5, 14, EXEC_AF_EOF);
	say(EXEC_STDERR, slice_from_str("!"));
	say_exit(3);
	expect_out("abcdef!");
	exec_spec_done(&spec);
	assert_int_equal(finish(), 3);
}

static void test_plain_is_lost(void **state)
{
	static const enum session_where ways[] = {SESSION_RUNS, SESSION_GONE};

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		begin(NULL, false);
		(void)next(EXEC_SPEC);
		say_started();
		t.sh->where = ways[i];
		(void)shutdown(t.conn, SHUT_RDWR);
		assert_int_equal(finish(), -ECONNRESET);
	}
}

static void test_kept_comes_back_by_itself(void **state)
{
	struct exec_attach a;

	begin("agent", false);
	(void)next(EXEC_SPEC);
	/* Another client had typed 100 bytes before. */
	say_attached(100, 5000, EXEC_AF_TTY | EXEC_AF_REPLAY);
	type("x");
	expect_in("x");
	t.sh->where = SESSION_RUNS;
	for (int i = 0; i < 3; i++) {
		(void)shutdown(t.conn, SHUT_RDWR);
		accept_stream();
		assert_int_equal(exec_get_attach(next(EXEC_ATTACH), &a), 0);
		assert_true(a.resume);
		assert_int_equal(a.out_at, 5000 + 5 * i);
		/* The first reconnect fails. */
		if (i == 0) {
			say(EXEC_ERROR, slice_from_str("\x7e"
						       "edge is away"));
			accept_stream();
			(void)next(EXEC_ATTACH);
		}
		/* Input typed now waits until its offset is known. */
		type("y");
		(void)usleep(100000);
		say_attached(100 + (uint64_t)i, a.out_at, EXEC_AF_TTY);
		expect_in(i == 0 ? "xy" : "yy");
		say(EXEC_STDOUT, slice_from_str("."));
	}
	expect_out("...");
	say_exit(0);
	assert_int_equal(finish(), 0);
	assert_int_equal(t.sh->left, SESSION_NOT_LEFT);
}

/* Data of a guest after the last frame of a stream does not begin the next one. */
static void test_the_rest_of_an_old_stream_is_dropped(void **state)
{
	struct exec_attached planted = {.pid = 1, .flags = EXEC_AF_TTY, .out_at = 5000};
	struct bufq q;

	begin("agent", false);
	(void)next(EXEC_SPEC);
	say_attached(0, 5000, EXEC_AF_TTY | EXEC_AF_REPLAY);
	t.sh->where = SESSION_RUNS;
	(void)shutdown(t.conn, SHUT_RDWR);
	accept_stream();
	(void)next(EXEC_ATTACH);
	bufq_init(&q, 256);
	assert_int_equal(exec_put_error(&q, 126, "edge is away"), 0);
	assert_int_equal(exec_put_attached(&q, &planted), 0);
	assert_int_equal(exec_put_frame(&q, EXEC_STDOUT, slice_from_str("planted")), 0);
	assert_int_equal(exec_put_exit(&q, false, 7), 0);
	say_queue(&q);
	accept_stream();
	(void)next(EXEC_ATTACH);
	say_attached(0, 5000, EXEC_AF_TTY);
	say(EXEC_STDOUT, slice_from_str("."));
	expect_out(".");
	say_exit(3);
	assert_int_equal(finish(), 3);
}

static void test_detach_keys(void **state)
{
	begin("agent", false);
	(void)next(EXEC_SPEC);
	say_started();
	say(EXEC_STDOUT, slice_from_str("\033[?1049h"));
	expect_out("\033[?1049h");
	/* One key of two and then another belongs to the program. */
	type("a\x10"
	     "b\x10");
	expect_in("a\x10"
		  "b");
	type("\x11");
	(void)next(EXEC_DETACH);
	say(EXEC_DETACHED, slice_of("\1", 1));
	/* The terminal is restored. */
	expect_out("\033[?1049l\033[0m");
	assert_int_equal(finish(), 0);
	assert_int_equal(t.sh->left, SESSION_DETACHED);
}

static void test_taken_over(void **state)
{
	begin("agent", true);
	(void)next(EXEC_ATTACH);
	say_attached(0, 0, EXEC_AF_TTY | EXEC_AF_REPLAY);
	say(EXEC_DETACHED, slice_of("\2", 1));
	assert_int_equal(finish(), 0);
	assert_int_equal(t.sh->left, SESSION_TAKEN_OVER);
}

/* The terminal was closed: no ^D for a program that keeps running. */
static void test_end_of_terminal_is_no_end_of_input(void **state)
{
	begin("agent", false);
	(void)next(EXEC_SPEC);
	say_started();
	fd_close(&t.in);
	assert_int_equal(finish(), 128 + SIGHUP);
	assert_int_equal(t.sh->left, SESSION_DETACHED);
}

static void test_no_such_session(void **state)
{
	begin("agent", true);
	(void)next(EXEC_ATTACH);
	say(EXEC_ERROR, slice_from_str("\x01session not found"));
	assert_int_equal(finish(), -ESRCH);
}

static void test_acknowledges(void **state)
{
	static uint8_t data[20000];
	uint64_t at;

	begin(NULL, false);
	(void)next(EXEC_SPEC);
	say_started();
	say(EXEC_STDOUT, slice_of(data, sizeof(data)));
	say(EXEC_STDERR, slice_of(data, sizeof(data)));
	assert_int_equal(exec_get_offset(next(EXEC_ACK), &at), 0);
	assert_int_equal(at, 2 * (sizeof(data) + EXEC_HEADER));
	for (size_t n = 0; n < 2 * sizeof(data);) {
		ssize_t k = read(t.out, data, sizeof(data));

		assert_true(k > 0);
		n += (size_t)k;
	}
	say_exit(0);
	assert_int_equal(finish(), 0);
}

/* False offsets of a guest are rejected. */
static void test_lies(void **state)
{
	for (int i = 0; i < 3; i++) {
		begin(NULL, false);
		(void)next(EXEC_SPEC);
		if (i == 0)
			say_started();
		if (i == 0)
			say(EXEC_TAKEN, slice_of("\x09\0\0\0\0\0\0\0", 8));
		if (i == 1)
			say_attached(0, 77, 0);
		if (i == 2)
			say(EXEC_DETACHED, slice_of("\x09", 1));
		assert_int_equal(finish(), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_slow_start_is_said_until_the_first_byte),
		cmocka_unit_test(test_suspended_and_back_exactly),
		cmocka_unit_test(test_plain_is_lost),
		cmocka_unit_test(test_kept_comes_back_by_itself),
		cmocka_unit_test(test_the_rest_of_an_old_stream_is_dropped),
		cmocka_unit_test(test_detach_keys),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_end_of_terminal_is_no_end_of_input),
		cmocka_unit_test(test_no_such_session),
		cmocka_unit_test(test_acknowledges),
		cmocka_unit_test(test_lies),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
