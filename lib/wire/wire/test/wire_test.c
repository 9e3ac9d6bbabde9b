/* SPDX-License-Identifier: Apache-2.0 */
/* Two honest ends: conversations, windows, many streams, fairness. */
#include "wire_pair.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum op { OPEN, REPLY, SEND, END, RESET, FAIL };

struct row {
	enum op op;
	char end;
	uint32_t slot;
	const char *arg;
	const char *expect;
};

static void do_row(struct pair *p, const struct row *row)
{
	struct end *e = row->end == 'C' ? &p->c : &p->s;

	switch (row->op) {
	case OPEN:
		assert_int_equal(wire_open(e->w, row->arg, row->slot, &e->ids[row->slot]), 0);
		break;
	case REPLY:
		assert_int_equal(wire_reply(e->w, e->ids[row->slot], (unsigned)atoi(row->arg)), 0);
		break;
	case SEND:
		(void)snprintf(e->text[row->slot], sizeof(e->text[0]), "%s", row->arg);
		wire_resume(e->w, e->ids[row->slot]);
		break;
	case END:
		e->ended[row->slot] = true;
		wire_resume(e->w, e->ids[row->slot]);
		break;
	case RESET:
		wire_reset(e->w, e->ids[row->slot]);
		break;
	case FAIL:
		e->failing[row->slot] = true;
		wire_resume(e->w, e->ids[row->slot]);
		break;
	}
}

static void replay(const struct row *rows, size_t n)
{
	/* Whole, byte by byte, and split at every offset that frames of this size have. */
	for (size_t chunk = 0; chunk < 80; chunk++) {
		struct pair *p = pair_new(chunk);

		pair_pump(p);
		assert_true(p->c.ready && p->s.ready);
		for (size_t i = 0; i < n; i++) {
			p->n_log = 0;
			p->log[0] = 0;
			p->last_data = 0;
			do_row(p, &rows[i]);
			pair_pump(p);
			assert_string_equal(p->log, rows[i].expect);
		}
		pair_free(p);
	}
}

static void test_conversation(void **state)
{
	static const struct row rows[] = {
		{OPEN, 'C', 0, "/exec", " S:open(0,/exec)"},
		{SEND, 'C', 0, "before the answer", " S:0=before the answer"},
		{REPLY, 'S', 0, "200", " C:reply(0,200)"},
		{SEND, 'S', 0, "hello", " C:0=hello"},
		{OPEN, 'C', 1, "/stats", " S:open(1,/stats)"},
		{REPLY, 'S', 1, "404", " C:reply(1,404)"},
		{END, 'C', 0, "", " S:end(0)"},
		{SEND, 'S', 0, "after your end", " C:0=after your end"},
		{END, 'S', 0, "", " S:close(0,ok) C:end(0) C:close(0,ok)"},
		{END, 'S', 1, "", " C:end(1)"},
		{SEND, 'C', 1, "still mine", " S:1=still mine"},
		{END, 'C', 1, "", " C:close(1,ok) S:end(1) S:close(1,ok)"},
	};

	replay(rows, ARRAY_LEN(rows));
}

static void test_resets(void **state)
{
	static const struct row rows[] = {
		{OPEN, 'C', 0, "/a", " S:open(0,/a)"},
		{RESET, 'C', 0, "", " S:close(0,reset)"},
		{OPEN, 'C', 1, "/b", " S:open(1,/b)"},
		{RESET, 'S', 1, "", " C:close(1,reset)"},
		{OPEN, 'C', 2, "/c", " S:open(2,/c)"},
		{REPLY, 'S', 2, "200", " C:reply(2,200)"},
		{FAIL, 'S', 2, "", " S:close(2,reset) C:close(2,reset)"},
		{OPEN, 'C', 3, "/d", " S:open(3,/d)"},
		{FAIL, 'C', 3, "", " C:close(3,reset) S:close(3,reset)"},
	};

	replay(rows, ARRAY_LEN(rows));
}

static void test_reset_before_sent(void **state)
{
	struct pair *p = pair_new(0);
	uint32_t id;

	pair_pump(p);
	assert_int_equal(wire_open(p->c.w, "/x", 0, &id), 0);
	wire_reset(p->c.w, id);
	pair_pump(p);
	assert_int_equal(wire_n_streams(p->c.w), 0);
	assert_int_equal(wire_n_streams(p->s.w), 0);
	assert_int_equal(p->c.n_closed, 0);
	pair_free(p);
}

static void test_refused_open(void **state)
{
	struct pair *p = pair_new(0);

	pair_pump(p);
	p->s.refuse = true;
	assert_int_equal(wire_open(p->c.w, "/x", 7, &p->c.ids[7]), 0);
	pair_pump(p);
	assert_string_equal(p->log, " C:close(7,reset)");
	assert_int_equal(wire_n_streams(p->s.w), 0);
	pair_free(p);
}

static void test_bad_calls(void **state)
{
	struct pair *p = pair_new(0);
	char longest[WIRE_MAX_PATH + 1];
	uint32_t id;

	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[WIRE_MAX_PATH] = 0;
	assert_int_equal(wire_open(p->c.w, longest, 0, &id), -EINVAL);
	assert_int_equal(wire_open(p->c.w, "exec", 0, &id), -EINVAL);
	assert_int_equal(wire_reply(p->s.w, 1, 200), -EPIPE);
	wire_reset(p->s.w, 99);
	wire_resume(p->s.w, 99);
	wire_consumed(p->s.w, 99, 5);
	pair_pump(p);
	pair_free(p);
}

static void test_many_streams(void **state)
{
	struct pair *p = pair_new(0);
	uint32_t id;

	pair_pump(p);
	for (uint32_t i = 0; i < WIRE_MAX_STREAMS; i++) {
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
		p->c.bulk[i] = 100000;
		p->c.ended[i] = true;
	}
	assert_int_equal(wire_open(p->c.w, "/exec", 0, &id), -EBUSY);
	pair_pump(p);
	assert_int_equal(wire_n_streams(p->s.w), WIRE_MAX_STREAMS);
	for (uint32_t i = 0; i < WIRE_MAX_STREAMS; i++) {
		p->s.bulk[i] = 100000;
		p->s.ended[i] = true;
		assert_int_equal(wire_reply(p->s.w, p->s.ids[i], 200), 0);
	}
	pair_pump(p);
	for (uint32_t i = 0; i < WIRE_MAX_STREAMS; i++) {
		assert_int_equal(p->c.got[i], 100000);
		assert_int_equal(p->s.got[i], 100000);
	}
	assert_int_equal(wire_n_streams(p->c.w), 0);
	assert_int_equal(wire_n_streams(p->s.w), 0);
	pair_free(p);
}

/* A reader that stops: the sender stops at the window, the heap stays, another stream goes on. */
static void test_back_pressure(void **state)
{
	struct pair *p = pair_new(0);
	size_t heap;

	pair_pump(p);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
	pair_pump(p);
	p->s.stall = true;
	heap = mallinfo2().uordblks;
	p->c.bulk[0] = 16 << 20;
	wire_resume(p->c.w, p->c.ids[0]);
	pair_pump(p);
	assert_int_equal(p->s.got[0], WIRE_STREAM_WINDOW);
	assert_int_equal(p->c.pulled[0], WIRE_STREAM_WINDOW);
	assert_true(mallinfo2().uordblks < heap + 64 * 1024);

	p->s.stall = false;
	p->c.bulk[1] = 8 << 20;
	wire_resume(p->c.w, p->c.ids[1]);
	pair_pump(p);
	assert_int_equal(p->s.got[1], 8 << 20);
	assert_int_equal(p->s.got[0], WIRE_STREAM_WINDOW);

	wire_consumed(p->s.w, p->s.ids[0], WIRE_STREAM_WINDOW);
	pair_pump(p);
	assert_int_equal(p->s.got[0], 16 << 20);
	pair_free(p);
}

/* Nobody reads 200 streams: the connection still carries the others. */
static void test_stalled_streams_stop_nobody(void **state)
{
	struct pair *p = pair_new(0);

	pair_pump(p);
	p->s.stall = true;
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
		p->c.bulk[i] = 4 << 20;
	}
	pair_pump(p);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(p->s.got[i], WIRE_STREAM_WINDOW);
	p->s.stall = false;
	assert_int_equal(wire_open(p->c.w, "/exec", 200, &p->c.ids[200]), 0);
	p->c.bulk[200] = 4 << 20;
	pair_pump(p);
	assert_int_equal(p->s.got[200], 4 << 20);
	pair_free(p);
}

/* A keystroke beside 32 bulk streams goes out within about one round of frames. */
static void test_fair(void **state)
{
	struct pair *p = pair_new(0);
	size_t before = 0;

	pair_pump(p);
	for (uint32_t i = 0; i < 33; i++)
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
	pair_pump(p);
	for (uint32_t i = 0; i < 32; i++) {
		p->c.bulk[i] = 64 << 20;
		wire_resume(p->c.w, p->c.ids[i]);
	}
	for (unsigned i = 0; i < 50; i++) {
		(void)pair_carry(p, &p->c, &p->s);
		(void)pair_carry(p, &p->s, &p->c);
	}
	for (uint32_t i = 0; i < 32; i++)
		assert_true(p->s.got[i] > 0);
	(void)snprintf(p->c.text[32], sizeof(p->c.text[32]), "k");
	wire_resume(p->c.w, p->c.ids[32]);
	while (p->s.got[32] == 0 && before < (64 << 20)) {
		(void)pair_carry(p, &p->c, &p->s);
		(void)pair_carry(p, &p->s, &p->c);
		before += 65536;
	}
	assert_true(before <= 2 * 33 * WIRE_MAX_FRAME);
	pair_free(p);
}

static void test_ping(void **state)
{
	struct pair *p = pair_new(3);

	pair_pump(p);
	assert_int_equal(wire_ping(p->c.w, 0x1122334455667788), 0);
	pair_pump(p);
	assert_true(p->c.pong == 0x1122334455667788);
	assert_true(p->s.pong == 0);
	pair_free(p);
}

/* Bytes of an older connection before the magic are dropped by the server. */
static void test_stale_bytes_before_preface(void **state)
{
	static const char *const stale[] = {"x", "PRI * HTT", "PRI * HTTP",
		"PRI * HTTPPRI * HTTP/2.0\r\n\r\n", "\0\0\4\0\0\0\0\0\1PRI",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"};

	for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
		struct pair *p = pair_new(i % 2);

		assert_int_equal(wire_feed(p->s.w, slice_from_str(stale[i]), 0), 0);
		pair_pump(p);
		assert_true(p->c.ready && p->s.ready);
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversation),
		cmocka_unit_test(test_resets),
		cmocka_unit_test(test_reset_before_sent),
		cmocka_unit_test(test_refused_open),
		cmocka_unit_test(test_bad_calls),
		cmocka_unit_test(test_many_streams),
		cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_stalled_streams_stop_nobody),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_ping),
		cmocka_unit_test(test_stale_bytes_before_preface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
