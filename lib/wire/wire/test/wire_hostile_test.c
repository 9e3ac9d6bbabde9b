/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile bytes by hand: frames that are not used, floods, garbage. */
#include "wire_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

struct frame {
	uint8_t type, flags;
	uint32_t id;
	const char *payload;
	size_t n;
};

static size_t put_frame(uint8_t *buf, const struct frame *f)
{
	buf[0] = 0;
	buf[1] = (uint8_t)(f->n >> 8);
	buf[2] = (uint8_t)f->n;
	buf[3] = f->type;
	buf[4] = f->flags;
	buf[5] = 0;
	buf[6] = 0;
	buf[7] = (uint8_t)(f->id >> 8);
	buf[8] = (uint8_t)f->id;
	if (f->n)
		memcpy(buf + 9, f->payload, f->n);
	return 9 + f->n;
}

/* Feeds a frame to one end as if the other had said it; the first error of feed or of pull. */
static int inject(struct end *to, const struct frame *f)
{
	uint8_t buf[1024], out[65536];
	int r = wire_feed(to->w, slice_of(buf, put_frame(buf, f)), 0);
	ssize_t n;

	if (r == 0) {
		n = wire_pull(to->w, out, sizeof(out));
		r = n < 0 ? (int)n : 0;
	}
	return r;
}

#define FRAME(type, flags, id, text)                    \
	{                                               \
		type, flags, id, text, sizeof(text) - 1 \
	}

static void check_refused(const char *what, char whom, struct frame f, unsigned times, int error)
{
	struct pair *p = pair_new(0);
	struct end *e = whom == 'C' ? &p->c : &p->s;
	int r = 0;

	pair_pump(p);
	assert_int_equal(wire_open(p->c.w, "/exec", 0, &p->c.ids[0]), 0);
	pair_pump(p);
	for (unsigned i = 0; i < times && r == 0; i++)
		r = inject(e, &f);
	if (r != error)
		fail_msg("%s: %d instead of %d (%s)", what, r, error, wire_error(e->w));
	assert_true(wire_error(e->w)[0] != 0);
	assert_int_equal(wire_feed(e->w, slice_from_str("x"), 0), error);
	assert_int_equal(wire_open(p->c.w, "/x", 1, &p->c.ids[1]), whom == 'C' ? -EPIPE : 0);
	assert_false(wire_wants_write(e->w));
	pair_free(p);
}

/* 0x20 says "table size 0", which must begin the first block after our SETTINGS. */
#define STATUS_200 "\x20\x88"
#define REQUEST "\x20\x83\x86\x84\x01\x03sbx"

static void test_violations_of_a_server(void **state)
{
	static const struct {
		const char *what;
		struct frame f;
	} rows[] = {
		{"priority", FRAME(2, 0, 1, "\0\0\0\0\1")},
		{"push", FRAME(5, 4, 1, "\0\0\0\2")},
		{"continuation", FRAME(9, 4, 1, "")},
		{"unknown type", FRAME(0x42, 0, 0, "hm")},
		{"padding", FRAME(0, 8, 1, "\1xy")},
		{"data before the head", FRAME(0, 0, 1, "data")},
		{"data of an idle stream", FRAME(0, 0, 99, "data")},
		{"head to be continued", FRAME(1, 0, 1, STATUS_200)},
		{"head of an idle stream", FRAME(1, 4, 99, STATUS_200)},
		{"status twice", FRAME(1, 4, 1, STATUS_200 "\x88")},
		{"a method", FRAME(1, 4, 1, "\x20\x83")},
		{"no status", FRAME(1, 4, 1, "\x20")},
		{"status 100", FRAME(1, 4, 1,
				       "\x20\x08\x03"
				       "100")},
		{"status 999", FRAME(1, 4, 1,
				       "\x20\x08\x03"
				       "999")},
		{"one more header", FRAME(1, 4, 1, STATUS_200 "\x0f\x10\x01x")},
		{"table size above 0", FRAME(1, 4, 1, "\x3f\xe1\x1f\x88")},
		{"update by 0", FRAME(8, 0, 0, "\0\0\0\0")},
		{"update over 2^31", FRAME(8, 0, 0, "\x7f\xff\xff\xff")},
		{"one stream only", FRAME(4, 0, 0, "\0\3\0\0\0\1")},
		{"window over 2^31", FRAME(4, 0, 0, "\0\4\xff\xff\xff\xff")},
		{"short ping", FRAME(6, 0, 0, "short")},
	};

	check_refused(
		"goaway", 'C', (struct frame)FRAME(7, 0, 0, "\0\0\0\0\0\0\0\0"), 1, -ECONNRESET);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_refused(rows[i].what, 'C', rows[i].f, 1, -EPROTO);
}

static void test_violations_of_a_client(void **state)
{
	static const struct {
		const char *what;
		struct frame f;
	} rows[] = {
		{"GET", FRAME(1, 4, 3, "\x20\x82\x86\x84\x01\x03sbx")},
		{"no authority", FRAME(1, 4, 3, "\x20\x83\x86\x84")},
		{"other authority", FRAME(1, 4, 3, "\x20\x83\x86\x84\x01\x03sbz")},
		{"https", FRAME(1, 4, 3, "\x20\x83\x87\x84\x01\x03sbx")},
		{"path without slash", FRAME(1, 4, 3, "\x20\x83\x86\x04\x01x\x01\x03sbx")},
		{"path with space", FRAME(1, 4, 3, "\x20\x83\x86\x04\x03/ x\x01\x03sbx")},
		{"one more header", FRAME(1, 4, 3, REQUEST "\x0f\x10\x01x")},
		{"even id", FRAME(1, 4, 2, REQUEST)},
		{"second head", FRAME(1, 4, 1, REQUEST)},
		{"priority flag", FRAME(1, 0x24, 3, "\0\0\0\0\1" REQUEST)},
		{"broken compression", FRAME(1, 4, 3, "\x20\xff\xff\xff\xff\xff\xff")},
		{"update of an idle stream", FRAME(8, 0, 77, "\0\1\0\0")},
		{"reset of an idle stream", FRAME(3, 0, 77, "\0\0\0\x08")},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_refused(rows[i].what, 'S', rows[i].f, 1, -EPROTO);
}

static void test_valid_request_by_hand(void **state)
{
	struct pair *p = pair_new(0);
	struct frame f = FRAME(1, 4, 1, REQUEST);

	pair_pump(p);
	assert_int_equal(inject(&p->s, &f), 0);
	assert_string_equal(p->log, " S:open(0,/)");
	pair_free(p);
}

/* On sbx.net another edge begins with what the first one began with: the guest must see it. */
static void test_second_settings_on_net(void **state)
{
	static const struct wire_ops none;
	uint8_t hello[33];
	struct wire *server = wire_new(WIRE_SERVER, WIRE_NET, &none, NULL);
	struct wire *client = wire_new(WIRE_CLIENT, WIRE_NET, &none, NULL);

	assert_int_equal(wire_pull(server, hello, sizeof(hello)), sizeof(hello));
	assert_int_equal(wire_feed(client, slice_of(hello, sizeof(hello)), 0), 0);
	assert_int_equal(wire_feed(client, slice_of(hello, sizeof(hello)), 0), -EPROTO);
	assert_string_equal(wire_error(client), "the peer started again");
	wire_free(server);
	wire_free(client);
}

static void test_floods(void **state)
{
	check_refused("ping", 'C', (struct frame)FRAME(6, 0, 0, "12345678"), WIRE_JUNK_BURST + 1,
		-EPROTO);
	check_refused(
		"settings", 'C', (struct frame)FRAME(4, 0, 0, ""), WIRE_JUNK_BURST + 1, -EPROTO);
	check_refused("tiny updates", 'C', (struct frame)FRAME(8, 0, 0, "\0\0\0\1"),
		WIRE_JUNK_BURST + 1, -EPROTO);
	check_refused(
		"empty data", 'S', (struct frame)FRAME(0, 0, 1, ""), WIRE_JUNK_BURST + 1, -EPROTO);
	check_refused("pong", 'S', (struct frame)FRAME(6, 1, 0, "12345678"), WIRE_JUNK_BURST + 1,
		-EPROTO);
}

/* Open and reset, again and again: what is known as rapid reset. */
static void test_rapid_reset(void **state)
{
	struct pair *p = pair_new(0);
	unsigned i = 0;
	int r = 0;

	pair_pump(p);
	p->s.refuse = true;
	for (; i < 2 * WIRE_JUNK_BURST && r == 0; i++) {
		struct frame open = FRAME(1, 4, 2 * i + 1, REQUEST);
		struct frame reset = FRAME(3, 0, 2 * i + 1, "\0\0\0\x08");

		r = inject(&p->s, &open);
		if (r == 0)
			r = inject(&p->s, &reset);
	}
	assert_int_equal(r, -EPROTO);
	assert_true(i >= WIRE_JUNK_BURST / 2 && i <= WIRE_JUNK_BURST + 1);
	pair_free(p);
}

/* The same rate of junk spread over time is what an honest peer's pings look like. */
static void test_slow_pings_are_fine(void **state)
{
	struct pair *p = pair_new(0);
	uint8_t buf[32], out[4096];
	struct frame f = FRAME(6, 0, 0, "12345678");
	size_t n = put_frame(buf, &f);

	pair_pump(p);
	for (uint64_t i = 0; i < 20000; i++) {
		assert_int_equal(wire_feed(p->c.w, slice_of(buf, n), i * 10), 0);
		assert_true(wire_pull(p->c.w, out, sizeof(out)) > 0);
	}
	pair_free(p);
}

/* A peer that asks for answers and never reads them is cut off while the queue is small. */
static void test_answers_do_not_pile_up(void **state)
{
	struct pair *p = pair_new(0);
	struct frame f = FRAME(6, 0, 0, "12345678");
	uint8_t buf[32];
	size_t n = put_frame(buf, &f);
	int r = 0;
	unsigned i = 0;

	pair_pump(p);
	for (; i < 100000 && r == 0; i++)
		r = wire_feed(p->c.w, slice_of(buf, n), i * 10);
	assert_int_equal(r, -EPROTO);
	assert_true(i <= 300);
	pair_free(p);
}

static void test_more_than_the_window(void **state)
{
	struct pair *p = pair_new(0);
	static uint8_t buf[9 + WIRE_MAX_FRAME];
	uint8_t out[4096];
	size_t sent = 0;
	int r = 0;

	pair_pump(p);
	p->s.stall = true;
	assert_int_equal(wire_open(p->c.w, "/exec", 0, &p->c.ids[0]), 0);
	pair_pump(p);
	memcpy(buf, "\0\x40\0\0\0\0\0\0\1", 9);
	while (r == 0 && sent < (8 << 20)) {
		ssize_t n;

		r = wire_feed(p->s.w, slice_of(buf, sizeof(buf)), 0);
		n = wire_pull(p->s.w, out, sizeof(out));
		if (r == 0 && n < 0)
			r = (int)n;
		sent += WIRE_MAX_FRAME;
	}
	assert_int_equal(r, -EPROTO);
	assert_int_equal(p->s.got[0], WIRE_STREAM_WINDOW);
	pair_free(p);
}

static void test_garbage(void **state)
{
	struct pair *p;
	uint8_t junk[512], out[4096];
	unsigned seed = 1;

	for (unsigned round = 0; round < 500; round++) {
		int r;

		p = pair_new(0);
		pair_pump(p);
		for (size_t i = 0; i < sizeof(junk); i++)
			junk[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
		r = wire_feed(p->c.w, slice_of(junk, sizeof(junk)), 0);
		if (r == 0)
			r = (int)wire_pull(p->c.w, out, sizeof(out));
		/* A random length may be legal and swallow all of it; then nothing is said. */
		assert_true(r == -EPROTO || r == -ECONNRESET || r == 0);
		pair_free(p);
	}
	p = pair_new(0);
	(void)!wire_feed(p->c.w, slice_from_str("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"), 0);
	assert_int_equal(wire_pull(p->c.w, out, sizeof(out)), -EPROTO);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_violations_of_a_server),
		cmocka_unit_test(test_violations_of_a_client),
		cmocka_unit_test(test_valid_request_by_hand),
		cmocka_unit_test(test_second_settings_on_net),
		cmocka_unit_test(test_floods),
		cmocka_unit_test(test_rapid_reset),
		cmocka_unit_test(test_slow_pings_are_fine),
		cmocka_unit_test(test_answers_do_not_pile_up),
		cmocka_unit_test(test_more_than_the_window),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
