/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/wire/guestapi/exec_frame.h"
#include "lib/base/mem.h"

/*
 * A playbook row: bytes in, what the reader says about them: "type:payload" per frame, then "."
 * when it waits between frames, ">" in the middle of one, "!" after a violation.
 */
struct play {
	const char *name;
	enum exec_side side;
	const char *in;
	size_t n;
	const char *out;
};

#define ROW(name, side, in, out)                    \
	{                                           \
		name, side, in, sizeof(in) - 1, out \
	}
#define STARTED "\x10\x04\0\0\x2a\0\0\0"
#define SPEC "\x01\x11\0\0\0\0\0\0\0\0\0\0\0\x01\0\x02\0ls\0\0"

#define ZERO8 "\0\0\0\0\0\0\0\0"
#define ATTACH "\x06\x1f\0\0\0" ZERO8 ZERO8 "\x18\0\x50\0" ZERO8 "\0\0"
#define ATTACHED "\x15\x25\0\0\1\0\0\0\0" ZERO8 ZERO8 ZERO8 ZERO8

static const struct play plays[] = {
	ROW("empty", EXEC_FROM_GUEST, "", "."),
	ROW("started", EXEC_FROM_GUEST, STARTED, "16:4 ."),
	ROW("output and exit", EXEC_FROM_GUEST,
		STARTED "\x11\x02\0\0hi\x12\x01\0\0!\x13\x02\0\0\0\7", "16:4 17:2 18:1 19:2 ."),
	ROW("empty output", EXEC_FROM_GUEST, STARTED "\x11\0\0\0", "16:4 17:0 ."),
	ROW("error first", EXEC_FROM_GUEST, "\x14\x04\0\0\x7fwhy", "20:4 ."),
	ROW("error after started", EXEC_FROM_GUEST, STARTED "\x14\x01\0\0\x7f", "16:4 !"),
	ROW("output before started", EXEC_FROM_GUEST, "\x11\x02\0\0hi", "!"),
	ROW("started twice", EXEC_FROM_GUEST, STARTED STARTED, "16:4 !"),
	ROW("after exit", EXEC_FROM_GUEST, STARTED "\x13\x02\0\0\0\0\x11\0\0\0", "16:4 19:2 !"),
	ROW("host type from guest", EXEC_FROM_GUEST, STARTED "\x02\0\0\0", "16:4 !"),
	ROW("unknown type", EXEC_FROM_GUEST, "\x19\0\0\0", "!"),
	ROW("type zero", EXEC_FROM_GUEST, "\0\0\0\0", "!"),
	ROW("type in the gap", EXEC_FROM_HOST, SPEC "\x09\0\0\0", "1:17 !"),
	ROW("one too long", EXEC_FROM_GUEST, STARTED "\x11\x01\0\x01", "16:4 !"),
	ROW("longest is begun", EXEC_FROM_GUEST, STARTED "\x11\0\0\x01x", "16:4 >"),
	ROW("short exit", EXEC_FROM_GUEST, STARTED "\x13\x01\0\0\0", "16:4 !"),
	ROW("cut head", EXEC_FROM_GUEST, STARTED "\x11\x02", "16:4 >"),
	ROW("cut payload", EXEC_FROM_GUEST, STARTED "\x11\x02\0\0h", "16:4 >"),
	ROW("spec and input", EXEC_FROM_HOST,
		SPEC "\x02\x03\0\0abc\x04\x04\0\0\x18\0\x50\0\x05\x01\0\0\x02\x03\0\0\0",
		"1:17 2:3 4:4 5:1 3:0 ."),
	ROW("input before spec", EXEC_FROM_HOST, "\x02\x03\0\0abc", "!"),
	ROW("spec twice", EXEC_FROM_HOST, SPEC SPEC, "1:17 !"),
	ROW("attach", EXEC_FROM_HOST, ATTACH "\x07\x08\0\0\1\0\0\0\0\0\0\0\x08\0\0\0",
		"6:31 7:8 8:0 ."),
	ROW("attach after spec", EXEC_FROM_HOST, SPEC ATTACH, "1:17 !"),
	ROW("ack first", EXEC_FROM_HOST, "\x07\x08\0\0\1\0\0\0\0\0\0\0", "!"),
	ROW("short attach", EXEC_FROM_HOST, "\x06\x1e\0\0", "!"),
	ROW("attached and on", EXEC_FROM_GUEST,
		ATTACHED "\x18\x01\0\0x\x16\x08\0\0\1\0\0\0\0\0\0\0\x17\x01\0\0\1",
		"21:37 24:1 22:8 23:1 ."),
	ROW("detached first", EXEC_FROM_GUEST, "\x17\x01\0\0\3", "23:1 ."),
	ROW("after detached", EXEC_FROM_GUEST, "\x17\x01\0\0\3" STARTED, "23:1 !"),
	ROW("attached after started", EXEC_FROM_GUEST, STARTED ATTACHED, "16:4 !"),
	ROW("eof with payload", EXEC_FROM_HOST, SPEC "\x03\x01\0\0x", "1:17 !"),
};

struct story {
	char text[256];
	size_t n;
};

static void tell_feed(struct story *st, struct exec_reader *rd, const char *p, size_t n)
{
	/* A heap copy of the exact size, so that the address sanitizer sees one byte too far. */
	uint8_t *copy = xmalloc(n ? n : 1);
	struct exec_frame f;
	struct slice in;

	memcpy(copy, p, n);
	in = slice_of(copy, n);
	while (exec_reader_feed(rd, &in, &f) == 1)
		st->n += (size_t)snprintf(st->text + st->n, sizeof(st->text) - st->n, "%d:%zu ",
			(int)f.type, f.payload.n);
	free(copy);
}

static void tell_end(struct story *st, struct exec_reader *rd)
{
	const char *end = rd->bad ? "!" : rd->n_head == 0 ? "." : ">";

	snprintf(st->text + st->n, sizeof(st->text) - st->n, "%s", end);
}

/* Feeds [0, a), then [a, n) in steps. */
static void check_play(const struct play *p, size_t a, size_t step)
{
	struct exec_reader rd;
	struct story st = {0};

	exec_reader_init(&rd, p->side);
	tell_feed(&st, &rd, p->in, a);
	for (size_t i = a; i < p->n; i += step)
		tell_feed(&st, &rd, p->in + i, MIN(step, p->n - i));
	tell_end(&st, &rd);
	if (strcmp(st.text, p->out) != 0)
		fail_msg("%s (split %zu, step %zu): %s instead of %s", p->name, a, step, st.text,
			p->out);
	exec_reader_done(&rd);
}

static void test_plays(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
		check_play(&plays[i], plays[i].n, 1);
		check_play(&plays[i], 0, 1);
		for (size_t a = 0; a < plays[i].n; a++)
			check_play(&plays[i], a, plays[i].n);
	}
}

static void test_bad_is_sticky(void **state)
{
	struct exec_reader rd;
	struct exec_frame f;
	struct slice in = slice_of("\xff\0\0\0", 4);

	exec_reader_init(&rd, EXEC_FROM_GUEST);
	assert_int_equal(exec_reader_feed(&rd, &in, &f), -EBADMSG);
	in = slice_of(STARTED, 8);
	assert_int_equal(exec_reader_feed(&rd, &in, &f), -EBADMSG);
	exec_reader_done(&rd);
}

static void test_writers_are_read_back(void **state)
{
	struct bufq q;
	struct exec_reader rd;
	struct exec_frame f;
	struct slice in, text;
	uint8_t status;
	bool signalled;

	bufq_init(&q, 4096);
	exec_reader_init(&rd, EXEC_FROM_GUEST);
	assert_int_equal(exec_put_started(&q, 77), 0);
	assert_int_equal(exec_put_data(&q, EXEC_STDOUT, slice_from_str("out")), 3);
	assert_int_equal(exec_put_exit(&q, true, 9), 0);
	in = bufq_peek(&q);
	assert_int_equal(exec_reader_feed(&rd, &in, &f), 1);
	assert_true(slice_eq(f.payload, slice_of("\x4d\0\0\0", 4)));
	assert_int_equal(exec_reader_feed(&rd, &in, &f), 1);
	assert_true(slice_eq_str(f.payload, "out"));
	assert_int_equal(exec_reader_feed(&rd, &in, &f), 1);
	assert_int_equal(exec_get_exit(f.payload, &signalled, &status), 0);
	assert_true(signalled);
	assert_int_equal(status, 9);
	exec_reader_done(&rd);
	exec_reader_init(&rd, EXEC_FROM_GUEST);
	bufq_consume(&q, bufq_len(&q));
	assert_int_equal(exec_put_error(&q, 127, "no such program"), 0);
	in = bufq_peek(&q);
	assert_int_equal(exec_reader_feed(&rd, &in, &f), 1);
	assert_int_equal(exec_get_error(f.payload, &status, &text), 0);
	assert_int_equal(status, 127);
	assert_true(slice_eq_str(text, "no such program"));
	exec_reader_done(&rd);
	bufq_done(&q);
}

static void test_full_queue_takes_what_fits(void **state)
{
	struct bufq q;

	bufq_init(&q, 10);
	assert_int_equal(exec_put_data(&q, EXEC_STDIN, slice_from_str("0123456789")), 6);
	assert_int_equal(exec_put_data(&q, EXEC_STDIN, slice_from_str("x")), 0);
	assert_int_equal(exec_put_frame(&q, EXEC_STDIN_EOF, slice_of(NULL, 0)), -ENOBUFS);
	bufq_consume(&q, 7);
	assert_int_equal(exec_put_frame(&q, EXEC_STDIN, slice_from_str("0123")), -ENOBUFS);
	assert_int_equal(bufq_len(&q), 3);
	bufq_done(&q);
}

static void test_ranges(void **state)
{
	uint8_t v;
	bool signalled;

	assert_int_equal(exec_get_signal(slice_of("\0", 1), &v), -EBADMSG);
	assert_int_equal(exec_get_signal(slice_of("\x41", 1), &v), -EBADMSG);
	assert_int_equal(exec_get_signal(slice_of("\x40", 1), &v), 0);
	assert_int_equal(exec_get_exit(slice_of("\2\0", 2), &signalled, &v), -EBADMSG);
	assert_int_equal(exec_get_exit(slice_of("\1\x80", 2), &signalled, &v), -EBADMSG);
	assert_int_equal(exec_get_exit(slice_of("\0\xff", 2), &signalled, &v), 0);
}

static char *some_argv[] = {(char *)"sh", (char *)"-c", (char *)"", NULL};
static char *some_env[] = {(char *)"A=1", (char *)"B=", NULL};

/* The payload of the frame that exec_put_spec queues. */
static int put_payload(struct wr *wr, const struct exec_spec *spec)
{
	struct bufq q;
	int r;

	bufq_init(&q, EXEC_HEADER + EXEC_MAX_PAYLOAD);
	r = exec_put_spec(&q, spec);
	if (r == 0) {
		struct slice frame = bufq_peek(&q);

		assert_true(frame.n > EXEC_HEADER && frame.n == bufq_len(&q));
		wr_bytes(wr, slice_of(frame.p + EXEC_HEADER, frame.n - EXEC_HEADER));
	}
	bufq_done(&q);
	return r < 0 ? r : wr_finish(wr);
}

static void test_spec_round_trip(void **state)
{
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct exec_spec in = {.flags = EXEC_F_TTY | EXEC_F_STDIN,
		.rows = 24,
		.cols = 80,
		.user = (char *)"root:docker",
		.cwd = (char *)"/tmp",
		.argv = some_argv,
		.env = some_env};
	struct exec_spec out;

	assert_int_equal(put_payload(&wr, &in), 0);
	assert_int_equal(exec_spec_decode(slice_of(buf, wr.n), &out), 0);
	assert_int_equal(out.flags, in.flags);
	assert_int_equal(out.cols, 80);
	assert_string_equal(out.user, "root:docker");
	assert_string_equal(out.cwd, "/tmp");
	assert_string_equal(out.argv[1], "-c");
	assert_string_equal(out.argv[2], "");
	assert_null(out.argv[3]);
	assert_string_equal(out.env[1], "B=");
	assert_null(out.env[2]);
	exec_spec_done(&out);
	/* Cut anywhere it is refused. */
	for (size_t n = 0; n < wr.n; n++)
		assert_int_equal(exec_spec_decode(slice_of(buf, n), &out), -EBADMSG);
}

static void expect_refused(struct exec_spec spec)
{
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(put_payload(&wr, &spec), -EINVAL);
}

static void test_spec_refused(void **state)
{
	char *none[] = {NULL}, *empty[] = {(char *)"", NULL}, *bare[] = {(char *)"NAME", NULL};
	char *nameless[] = {(char *)"=x", NULL};
	struct exec_spec out;

	expect_refused((struct exec_spec){.argv = none});
	expect_refused((struct exec_spec){.argv = empty});
	expect_refused((struct exec_spec){.argv = some_argv, .env = bare});
	expect_refused((struct exec_spec){.argv = some_argv, .env = nameless});
	expect_refused((struct exec_spec){.argv = some_argv, .flags = 128});
	/* A NUL inside a string; a count without strings. */
	assert_int_equal(exec_spec_decode(slice_of("\0\0\0\0\0\0\0\0\0\1\0\2\0a\0\0\0", 17), &out),
		-EBADMSG);
	assert_int_equal(
		exec_spec_decode(slice_of("\0\0\0\0\0\0\0\0\0\xff\xff\2\0ab\0\0", 17), &out),
		-EBADMSG);
}

/* What a kept session needs, and everything that lacks one thing of it. */
static struct exec_spec kept_spec(void)
{
	return (struct exec_spec){.argv = some_argv,
		.flags = EXEC_F_TTY | EXEC_F_STDIN | EXEC_F_RESUME | EXEC_F_KEEP | EXEC_F_ATTACH,
		.token = {1},
		.session = "agent-2"};
}

static void test_kept_spec(void **state)
{
	static const uint8_t lacks[] = {EXEC_F_TTY, EXEC_F_STDIN, EXEC_F_RESUME, EXEC_F_KEEP};
	static const uint8_t adds[] = {EXEC_F_DETACHED, EXEC_F_BUILTIN};
	struct exec_spec in = kept_spec(), out;
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(put_payload(&wr, &in), 0);
	assert_int_equal(exec_spec_decode(slice_of(buf, wr.n), &out), 0);
	assert_string_equal(out.session, "agent-2");
	assert_memory_equal(out.token, in.token, EXEC_TOKEN);
	exec_spec_done(&out);
	for (size_t n = 0; n < wr.n; n++)
		assert_int_equal(exec_spec_decode(slice_of(buf, n), &out), -EBADMSG);
	for (size_t i = 0; i < ARRAY_LEN(lacks); i++) {
		in.flags = kept_spec().flags & (uint8_t)~lacks[i];
		expect_refused(in);
	}
	for (size_t i = 0; i < ARRAY_LEN(adds); i++) {
		in.flags = kept_spec().flags | adds[i];
		expect_refused(in);
	}
	in = kept_spec();
	memset(in.token, 0, EXEC_TOKEN);
	expect_refused(in);
	in = kept_spec();
	(void)snprintf(in.session, sizeof(in.session), "../x");
	expect_refused(in);
}

static void test_session_names(void **state)
{
	char longest[EXEC_MAX_SESSION + 2] = "";

	memset(longest, 'a', EXEC_MAX_SESSION);
	assert_true(exec_session_is_valid("agent"));
	assert_true(exec_session_is_valid(longest));
	longest[EXEC_MAX_SESSION] = 'a';
	assert_false(exec_session_is_valid(longest));
	assert_false(exec_session_is_valid(""));
	assert_false(exec_session_is_valid("Agent"));
	assert_false(exec_session_is_valid("a b"));
	assert_false(exec_session_is_valid("a\n"));
}

static struct slice only_payload(struct bufq *q)
{
	struct slice s = bufq_peek(q);

	assert_true(s.n >= EXEC_HEADER);
	return slice_of(s.p + EXEC_HEADER, s.n - EXEC_HEADER);
}

static void test_attach_round_trip(void **state)
{
	struct exec_attach in = {
		.resume = true, .rows = 2, .cols = 3, .out_at = UINT64_MAX, .token = {9}};
	struct exec_attach out;
	struct exec_attached a = {1, EXEC_AF_EOF, 2, 3, 4, UINT64_MAX}, b;
	enum exec_reason reason;
	struct bufq q;

	bufq_init(&q, 4096);
	(void)snprintf(in.session, sizeof(in.session), "agent");
	assert_int_equal(exec_put_attach(&q, &in), 0);
	assert_int_equal(exec_get_attach(only_payload(&q), &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	bufq_consume(&q, bufq_len(&q));
	in.resume = false;
	in.look = true;
	assert_int_equal(exec_put_attach(&q, &in), 0);
	assert_int_equal(exec_get_attach(only_payload(&q), &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	bufq_consume(&q, bufq_len(&q));
	assert_int_equal(exec_put_attached(&q, &a), 0);
	assert_int_equal(exec_get_attached(only_payload(&q), &b), 0);
	assert_true(b.in_taken == 2 && b.out_at == 3 && b.replay == 4 && b.dropped == UINT64_MAX);
	bufq_consume(&q, bufq_len(&q));
	(void)snprintf(in.session, sizeof(in.session), "no name");
	assert_int_equal(exec_put_attach(&q, &in), -EINVAL);
	/* A fourth kind of resume, a name with a NUL, a flag or a reason that is none. */
	assert_int_equal(
		exec_get_attach(slice_of("\3" ZERO8 ZERO8 "\0\0\0\0" ZERO8 "\0\0", 31), &out),
		-EBADMSG);
	assert_int_equal(
		exec_get_attach(slice_of("\0" ZERO8 ZERO8 "\0\0\0\0" ZERO8 "\2\0a\0", 33), &out),
		-EBADMSG);
	assert_int_equal(
		exec_get_attached(slice_of("\1\0\0\0\x10" ZERO8 ZERO8 ZERO8 ZERO8, 37), &b),
		-EBADMSG);
	assert_int_equal(exec_get_detached(slice_of("\0", 1), &reason), -EBADMSG);
	assert_int_equal(exec_get_detached(slice_of("\4", 1), &reason), -EBADMSG);
	assert_int_equal(exec_get_detached(slice_of("\3", 1), &reason), 0);
	bufq_done(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plays),
		cmocka_unit_test(test_bad_is_sticky),
		cmocka_unit_test(test_writers_are_read_back),
		cmocka_unit_test(test_full_queue_takes_what_fits),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_spec_round_trip),
		cmocka_unit_test(test_spec_refused),
		cmocka_unit_test(test_kept_spec),
		cmocka_unit_test(test_session_names),
		cmocka_unit_test(test_attach_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
