/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest - the guest's ends of both wires: sbx.net as client, sbx.ctl as a server that refuses all,
 * or what the rig has
 *         for it.
 */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static int refuse(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	return -EPERM;
}

static void on_ready(void *ctx)
{
	struct rig *r = ctx;

	r->net.ready = true;
}

static void on_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
	struct rig *r = ctx;

	if (status != 200) /* edge answers 200 or resets */
		r->stopping = true;
}

static void on_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct rig *r = ctx;

	r->guest_ops->on_data(r->guest_ctx, slot, bytes);
}

static void on_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct rig *r = ctx;

	r->guest_ops->on_end(r->guest_ctx, slot);
}

static void on_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	struct rig *r = ctx;

	r->stats.resets += error != 0;
	r->guest_ops->on_close(r->guest_ctx, slot, error != 0);
}

static ssize_t pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct rig *r = ctx;

	return r->guest_ops->pull(r->guest_ctx, slot, buf, n);
}

static const struct wire_ops ctl_ops = {.on_open = refuse};
static const struct wire_ops net_ops = {
	.on_ready = on_ready,
	.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
};

void rig_guest_set(struct rig *r, const struct rig_guest_ops *ops, void *ctx)
{
	r->guest_ops = ops;
	r->guest_ctx = ctx;
}

int rig_guest_open(struct rig *r, const char *path, uint32_t slot, uint32_t *ret_id)
{
	int n = r->net.wire ? wire_open(r->net.wire, path, slot, ret_id) : -EPIPE;

	r->stats.streams += n == 0;
	return n;
}

static struct loop_key key_of(const struct rig *r, const struct rig_wire *w)
{
	return (struct loop_key){
		.kind = w == &r->net ? RIG_EV_NET : RIG_EV_CTL, .gen = r->edge.gen};
}

int rig_wire_start(struct rig *r, struct rig_wire *w, bool net, int fd)
{
	*w = (struct rig_wire){.fd = fd, .out = xmalloc(RIG_OUT)};
	w->wire = net ? wire_new(WIRE_CLIENT, WIRE_NET, &net_ops, r)
		      : wire_new(WIRE_SERVER, WIRE_CTL, r->ctl_ops ? r->ctl_ops : &ctl_ops, r);
	return loop_add(&r->loop, fd, EPOLLIN, key_of(r, w));
}

void rig_wire_stop(struct rig *r, struct rig_wire *w)
{
	if (w->fd < 0)
		return;
	loop_del(&r->loop, w->fd);
	fd_close(&w->fd);
	wire_free(w->wire);
	free(w->out);
	*w = (struct rig_wire){.fd = -1};
	if (w == &r->net && r->guest_ops)
		r->guest_ops->on_close(r->guest_ctx, RIG_ALL, true);
}

static void broken(struct rig *r, struct rig_wire *w, const char *what)
{
	(void)fprintf(
		stderr, "netrig: the wire %s: %s\n", w == &r->net ? "sbx.net" : "sbx.ctl", what);
	rig_wire_stop(r, w);
}

void rig_wire_event(struct rig *r, struct rig_wire *w, uint32_t events)
{
	static uint8_t buf[RIG_OUT];
	ssize_t n;

	if (w->fd < 0)
		return;
	n = read(w->fd, buf, sizeof(buf));
	if (n == 0)
		broken(r, w, "edge closed it");
	else if (n < 0 && errno != EAGAIN)
		broken(r, w, "reading failed");
	else if (n > 0 && wire_feed(w->wire, slice_of(buf, (size_t)n), clock_mono_ms()) < 0)
		broken(r, w, wire_error(w->wire));
}

static void watch_out(struct rig *r, struct rig_wire *w, bool on)
{
	if (w->blocked == on)
		return;
	w->blocked = on;
	if (loop_mod(&r->loop, w->fd, EPOLLIN | (on ? EPOLLOUT : 0), key_of(r, w)) < 0)
		r->stopping = true;
}

void rig_wire_flush(struct rig *r, struct rig_wire *w)
{
	ssize_t n;

	while (w->fd >= 0) {
		if (w->n_out == 0) {
			n = wire_pull(w->wire, w->out, RIG_OUT);
			if (n < 0)
				broken(r, w, wire_error(w->wire));
			if (n <= 0)
				return;
			w->n_out = (size_t)n;
			w->out_at = 0;
		}
		n = send(w->fd, w->out + w->out_at, w->n_out, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			watch_out(r, w, true);
			return;
		}
		if (n < 0) {
			broken(r, w, "writing failed");
			return;
		}
		w->out_at += (size_t)n;
		w->n_out -= (size_t)n;
		if (w->n_out == 0)
			watch_out(r, w, false);
	}
}
