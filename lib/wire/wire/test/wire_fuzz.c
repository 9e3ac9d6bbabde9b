/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes to a client (first byte even) or to a server (odd) in the middle of its work. */
#include "lib/wire/wire/wire.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct fuzz {
	struct wire *w;
	size_t held, to_send;
	unsigned n_open;
};

static int on_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	struct fuzz *f = ctx;

	*ret_slot = f->n_open++;
	if (f->n_open % 5 == 4)
		return -EPERM;
	if (f->n_open % 3)
		(void)!wire_reply(f->w, id, 200);
	return 0;
}

static void on_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
	struct fuzz *f = ctx;

	if (status == 500)
		wire_reset(f->w, id);
}

static void on_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct fuzz *f = ctx;

	/* Even slots are read, odd ones are not. */
	if (slot % 2)
		f->held += bytes.n;
	else
		wire_consumed(f->w, id, bytes.n);
	if (bytes.n && bytes.p[0] == 'R')
		wire_reset(f->w, id);
}

static void on_end(void *ctx, uint32_t id, uint32_t slot)
{
	wire_resume(((struct fuzz *)ctx)->w, id);
}

static void on_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
}

static ssize_t pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct fuzz *f = ctx;

	if (slot % 4 == 3)
		return 0;
	n = n < f->to_send ? n : f->to_send;
	memset(buf, 0, n);
	f->to_send -= n;
	return n ? (ssize_t)n : -EAGAIN;
}

static const struct wire_ops ops = {
	.on_open = on_open,
	.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
};

static void drain(struct wire *w)
{
	uint8_t out[4096];

	for (unsigned i = 0; i < 64 && wire_pull(w, out, sizeof(out)) > 0; i++)
		;
}

static void start(struct fuzz *f, bool server)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	uint32_t id;

	f->w = wire_new(server ? WIRE_SERVER : WIRE_CLIENT, WIRE_CTL, &ops, f);
	if (server)
		(void)!wire_feed(f->w, slice_from_str(preface), 0);
	for (uint32_t i = 0; i < 4 && !server; i++)
		(void)!wire_open(f->w, "/exec", i, &id);
	drain(f->w);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz f = {.to_send = 100000};
	size_t step;

	if (n < 2)
		return 0;
	start(&f, p[0] % 2);
	step = p[1] ? p[1] : n;
	for (size_t i = 2; i < n; i += step) {
		if (wire_feed(f.w, slice_of(p + i, n - i < step ? n - i : step), i) < 0)
			break;
		drain(f.w);
	}
	if (f.held > (size_t)WIRE_MAX_STREAMS * WIRE_STREAM_WINDOW)
		__builtin_trap();
	wire_free(f.w);
	return 0;
}
