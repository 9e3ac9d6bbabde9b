/* Client and server wired back to back through byte queues; and hostile bytes fed by hand. */
#include "wire.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define MAX_SLOTS 300

struct end {
	struct wire *w;
	char tag; /* 'C' or 'S' */
	struct pair *pair;
	uint32_t ids[MAX_SLOTS];
	unsigned n_slots;
	bool ready, stall; /* stall: takes bytes and never says so */
	bool refuse;	   /* on_open says no */
	uint64_t got[MAX_SLOTS], pulled[MAX_SLOTS];
	char text[MAX_SLOTS][64]; /* to send */
	uint64_t bulk[MAX_SLOTS]; /* or so many bytes */
	bool ended[MAX_SLOTS], failing[MAX_SLOTS];
	uint64_t pong;
	unsigned n_closed;
};

struct pair {
	struct end c, s;
	size_t chunk; /* bytes handed over at a time; 0: all */
	char log[4096];
	size_t n_log;
	char last_data; /* tag of the end whose data row is open, so that chunks join */
};

static void note(struct pair *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct pair *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	p->n_log += (size_t)vsnprintf(p->log + p->n_log, sizeof(p->log) - p->n_log, fmt, ap);
	va_end(ap);
	assert_true(p->n_log < sizeof(p->log));
}

static void on_ready(void *ctx)
{
	((struct end *)ctx)->ready = true;
}

static int on_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	struct end *e = ctx;

	if (e->refuse)
		return -EPERM;
	assert_true(e->n_slots < MAX_SLOTS);
	*ret_slot = e->n_slots++;
	e->ids[*ret_slot] = id;
	if (e->pair->n_log < 2000)
		note(e->pair, " %c:open(%u,%s)", e->tag, *ret_slot, path);
	e->pair->last_data = 0;
	return 0;
}

static void on_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
	struct end *e = ctx;

	assert_int_equal(e->ids[slot], id);
	if (e->pair->n_log < 2000)
		note(e->pair, " %c:reply(%u,%u)", e->tag, slot, status);
	e->pair->last_data = 0;
}

static void on_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct end *e = ctx;

	assert_int_equal(e->ids[slot], id);
	e->got[slot] += bytes.n;
	if (!e->stall)
		wire_consumed(e->w, id, bytes.n);
	if (bytes.n > 60 || e->pair->n_log > 2000)
		return;
	if (e->pair->last_data != e->tag)
		note(e->pair, " %c:%u=", e->tag, slot);
	e->pair->last_data = e->tag;
	note(e->pair, "%.*s", (int)bytes.n, (const char *)bytes.p);
}

static void on_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct end *e = ctx;

	if (e->pair->n_log < 2000)
		note(e->pair, " %c:end(%u)", e->tag, slot);
	e->pair->last_data = 0;
}

static void on_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	struct end *e = ctx;

	e->n_closed++;
	if (e->pair->n_log < 2000)
		note(e->pair, " %c:close(%u,%s)", e->tag, slot, error ? "reset" : "ok");
	e->pair->last_data = 0;
}

static ssize_t pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct end *e = ctx;
	size_t have = strlen(e->text[slot]);

	assert_int_equal(e->ids[slot], id);
	if (e->failing[slot])
		return -EIO;
	if (e->bulk[slot]) {
		n = MIN(n, e->bulk[slot]);
		memset(buf, 'b', n);
		e->bulk[slot] -= n;
	} else if (have) {
		assert_true(have <= n);
		n = have;
		memcpy(buf, e->text[slot], n);
		e->text[slot][0] = 0;
	} else {
		return e->ended[slot] ? 0 : -EAGAIN;
	}
	e->pulled[slot] += n;
	return (ssize_t)n;
}

static void on_pong(void *ctx, uint64_t cookie)
{
	((struct end *)ctx)->pong = cookie;
}

static const struct wire_ops ops = {
	.on_ready = on_ready,
	.on_open = on_open,
	.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
	.on_pong = on_pong,
};

static struct pair *pair_new(size_t chunk)
{
	struct pair *p = xcalloc(1, sizeof(*p));

	p->chunk = chunk;
	p->c.tag = 'C';
	p->s.tag = 'S';
	p->c.pair = p->s.pair = p;
	p->c.w = wire_new(WIRE_CLIENT, &ops, &p->c);
	p->s.w = wire_new(WIRE_SERVER, &ops, &p->s);
	return p;
}

static void pair_free(struct pair *p)
{
	wire_free(p->c.w);
	wire_free(p->s.w);
	free(p);
}

/* One buffer from one end to the other; whether anything moved. */
static bool carry(struct pair *p, struct end *from, struct end *to)
{
	static uint8_t buf[65536];
	ssize_t n = wire_pull(from->w, buf, sizeof(buf));
	size_t step = p->chunk ? p->chunk : sizeof(buf);

	assert_true(n >= 0);
	for (size_t i = 0; i < (size_t)n; i += step) {
		struct slice part = slice_of(buf + i, MIN(step, (size_t)n - i));

		assert_int_equal(wire_feed(to->w, part, 0), 0);
	}
	return n > 0;
}

static void pump(struct pair *p)
{
	for (unsigned i = 0; i < 100000; i++) {
		bool moved = carry(p, &p->c, &p->s);

		if (!carry(p, &p->s, &p->c) && !moved)
			return;
	}
	fail_msg("the two ends never come to rest");
}

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

		pump(p);
		assert_true(p->c.ready && p->s.ready);
		for (size_t i = 0; i < n; i++) {
			p->n_log = 0;
			p->log[0] = 0;
			p->last_data = 0;
			do_row(p, &rows[i]);
			pump(p);
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

	pump(p);
	assert_int_equal(wire_open(p->c.w, "/x", 0, &id), 0);
	wire_reset(p->c.w, id);
	pump(p);
	assert_int_equal(wire_n_streams(p->c.w), 0);
	assert_int_equal(wire_n_streams(p->s.w), 0);
	assert_int_equal(p->c.n_closed, 0);
	pair_free(p);
}

static void test_refused_open(void **state)
{
	struct pair *p = pair_new(0);

	pump(p);
	p->s.refuse = true;
	assert_int_equal(wire_open(p->c.w, "/x", 7, &p->c.ids[7]), 0);
	pump(p);
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
	pump(p);
	pair_free(p);
}

static void test_many_streams(void **state)
{
	struct pair *p = pair_new(0);
	uint32_t id;

	pump(p);
	for (uint32_t i = 0; i < WIRE_MAX_STREAMS; i++) {
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
		p->c.bulk[i] = 100000;
		p->c.ended[i] = true;
	}
	assert_int_equal(wire_open(p->c.w, "/exec", 0, &id), -EBUSY);
	pump(p);
	assert_int_equal(wire_n_streams(p->s.w), WIRE_MAX_STREAMS);
	for (uint32_t i = 0; i < WIRE_MAX_STREAMS; i++) {
		p->s.bulk[i] = 100000;
		p->s.ended[i] = true;
		assert_int_equal(wire_reply(p->s.w, p->s.ids[i], 200), 0);
	}
	pump(p);
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

	pump(p);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
	pump(p);
	p->s.stall = true;
	heap = mallinfo2().uordblks;
	p->c.bulk[0] = 16 << 20;
	wire_resume(p->c.w, p->c.ids[0]);
	pump(p);
	assert_int_equal(p->s.got[0], WIRE_STREAM_WINDOW);
	assert_int_equal(p->c.pulled[0], WIRE_STREAM_WINDOW);
	assert_true(mallinfo2().uordblks < heap + 64 * 1024);

	p->s.stall = false;
	p->c.bulk[1] = 8 << 20;
	wire_resume(p->c.w, p->c.ids[1]);
	pump(p);
	assert_int_equal(p->s.got[1], 8 << 20);
	assert_int_equal(p->s.got[0], WIRE_STREAM_WINDOW);

	wire_consumed(p->s.w, p->s.ids[0], WIRE_STREAM_WINDOW);
	pump(p);
	assert_int_equal(p->s.got[0], 16 << 20);
	pair_free(p);
}

/* Nobody reads 200 streams: the connection still carries the others. */
static void test_stalled_streams_stop_nobody(void **state)
{
	struct pair *p = pair_new(0);

	pump(p);
	p->s.stall = true;
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
		p->c.bulk[i] = 4 << 20;
	}
	pump(p);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(p->s.got[i], WIRE_STREAM_WINDOW);
	p->s.stall = false;
	assert_int_equal(wire_open(p->c.w, "/exec", 200, &p->c.ids[200]), 0);
	p->c.bulk[200] = 4 << 20;
	pump(p);
	assert_int_equal(p->s.got[200], 4 << 20);
	pair_free(p);
}

/* A keystroke beside 32 bulk streams goes out within about one round of frames. */
static void test_fair(void **state)
{
	struct pair *p = pair_new(0);
	size_t before = 0;

	pump(p);
	for (uint32_t i = 0; i < 33; i++)
		assert_int_equal(wire_open(p->c.w, "/exec", i, &p->c.ids[i]), 0);
	pump(p);
	for (uint32_t i = 0; i < 32; i++) {
		p->c.bulk[i] = 64 << 20;
		wire_resume(p->c.w, p->c.ids[i]);
	}
	for (unsigned i = 0; i < 50; i++) {
		(void)carry(p, &p->c, &p->s);
		(void)carry(p, &p->s, &p->c);
	}
	for (uint32_t i = 0; i < 32; i++)
		assert_true(p->s.got[i] > 0);
	(void)snprintf(p->c.text[32], sizeof(p->c.text[32]), "k");
	wire_resume(p->c.w, p->c.ids[32]);
	while (p->s.got[32] == 0 && before < (64 << 20)) {
		(void)carry(p, &p->c, &p->s);
		(void)carry(p, &p->s, &p->c);
		before += 65536;
	}
	assert_true(before <= 2 * 33 * WIRE_MAX_FRAME);
	pair_free(p);
}

static void test_ping(void **state)
{
	struct pair *p = pair_new(3);

	pump(p);
	assert_int_equal(wire_ping(p->c.w, 0x1122334455667788), 0);
	pump(p);
	assert_true(p->c.pong == 0x1122334455667788);
	assert_true(p->s.pong == 0);
	pair_free(p);
}

/* Bytes of an older connection before the magic are dropped by the server. */
static void test_stale_bytes_before_preface(void **state)
{
	static const char *const stale[] = {"x", "PRI * HTTP", "PRI * HTTPPRI * HTTP/2.0\r\n\r\n",
		"\0\0\4\0\0\0\0\0\1PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r"};

	for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
		struct pair *p = pair_new(i % 2);

		assert_int_equal(wire_feed(p->s.w, slice_from_str(stale[i]), 0), 0);
		pump(p);
		assert_true(p->c.ready && p->s.ready);
		pair_free(p);
	}
}

/* --- hostile bytes --- */

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

	pump(p);
	assert_int_equal(wire_open(p->c.w, "/exec", 0, &p->c.ids[0]), 0);
	pump(p);
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

	pump(p);
	assert_int_equal(inject(&p->s, &f), 0);
	assert_string_equal(p->log, " S:open(0,/)");
	pair_free(p);
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

	pump(p);
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

	pump(p);
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

	pump(p);
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

	pump(p);
	p->s.stall = true;
	assert_int_equal(wire_open(p->c.w, "/exec", 0, &p->c.ids[0]), 0);
	pump(p);
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
		pump(p);
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
		cmocka_unit_test(test_violations_of_a_server),
		cmocka_unit_test(test_violations_of_a_client),
		cmocka_unit_test(test_valid_request_by_hand),
		cmocka_unit_test(test_floods),
		cmocka_unit_test(test_rapid_reset),
		cmocka_unit_test(test_slow_pings_are_fine),
		cmocka_unit_test(test_answers_do_not_pile_up),
		cmocka_unit_test(test_more_than_the_window),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
