/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl - the guest's answers on sbx.ctl: /setup and /trust are well, and what was trusted is kept
 * for the test.
 */
#include "credrig.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/base/mem.h"

#define STREAMS 8

struct question {
	bool used, is_trust, is_answered;
	uint8_t body[GUEST_MAX_BODY];
	size_t n, at;
};

static struct question questions[STREAMS];

static int on_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	bool is_trust = strcmp(path, GUEST_PATH_TRUST) == 0;

	(void)ctx;
	(void)id;
	if (!is_trust && strcmp(path, GUEST_PATH_SETUP) != 0)
		return -EPERM;
	for (uint32_t i = 0; i < STREAMS; i++) {
		struct question *q = &questions[i];

		if (q->used)
			continue;
		q->used = true;
		q->is_trust = is_trust;
		q->is_answered = false;
		q->n = q->at = 0;
		*ret_slot = i;
		return 0;
	}
	return -EBUSY;
}

static void on_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct credrig *c = ctx;
	struct question *q = &questions[slot];

	if (bytes.n > sizeof(q->body) - q->n) {
		wire_reset(c->rig.ctl.wire, id);
		q->used = false;
		return;
	}
	memcpy(q->body + q->n, bytes.p, bytes.n);
	q->n += bytes.n;
	wire_consumed(c->rig.ctl.wire, id, bytes.n);
}

static bool keep_trust(struct credrig *c, struct slice body)
{
	struct guest_trust trust;

	if (guest_get_trust(body, &trust) < 0)
		return false;
	guest_trust_done(&c->trust);
	c->trust = trust;
	c->n_trusts++;
	return true;
}

static bool is_setup(struct slice body)
{
	struct guest_setup setup;

	if (guest_get_setup(body, &setup) < 0)
		return false;
	guest_setup_done(&setup);
	return true;
}

static void on_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct credrig *c = ctx;
	struct question *q = &questions[slot];
	struct slice body = slice_of(q->body, q->n);
	bool ok = q->is_trust ? keep_trust(c, body) : is_setup(body);
	struct wr wr = wr_init(q->body, sizeof(q->body));

	if (guest_put_reply(&wr, ok, ok ? "" : "it does not decode") < 0 ||
		wire_reply(c->rig.ctl.wire, id, 200) < 0) {
		c->rig.stopping = true;
		return;
	}
	q->n = wr.n;
	q->at = 0;
	q->is_answered = true;
	wire_resume(c->rig.ctl.wire, id);
}

static void on_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	(void)ctx;
	(void)id;
	(void)error;
	questions[slot].used = false;
}

static ssize_t pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct question *q = &questions[slot];

	(void)ctx;
	(void)id;
	if (!q->is_answered)
		return -EAGAIN;
	n = MIN(n, q->n - q->at);
	memcpy(buf, q->body + q->at, n);
	q->at += n;
	return (ssize_t)n;
}

const struct wire_ops credrig_ctl_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
};

void ctl_forget(void)
{
	for (size_t i = 0; i < STREAMS; i++)
		questions[i].used = false;
}
