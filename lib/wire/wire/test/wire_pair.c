/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

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

struct pair *pair_new(size_t chunk)
{
	struct pair *p = xcalloc(1, sizeof(*p));

	p->chunk = chunk;
	p->c.tag = 'C';
	p->s.tag = 'S';
	p->c.pair = p->s.pair = p;
	p->c.w = wire_new(WIRE_CLIENT, WIRE_CTL, &ops, &p->c);
	p->s.w = wire_new(WIRE_SERVER, WIRE_CTL, &ops, &p->s);
	return p;
}

void pair_free(struct pair *p)
{
	wire_free(p->c.w);
	wire_free(p->s.w);
	free(p);
}

bool pair_carry(struct pair *p, struct end *from, struct end *to)
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

void pair_pump(struct pair *p)
{
	for (unsigned i = 0; i < 100000; i++) {
		bool moved = pair_carry(p, &p->c, &p->s);

		if (!pair_carry(p, &p->s, &p->c) && !moved)
			return;
	}
	fail_msg("the two ends never come to rest");
}
