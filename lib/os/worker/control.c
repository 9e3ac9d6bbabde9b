/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"

void control_open(struct control *c, const struct control_ops *ops, struct loop *loop, void *ctx)
{
	*c = (struct control){.ops = ops, .ctx = ctx, .loop = loop};
	if (loop_init(loop) < 0 ||
		loop_add(loop, CONTROL_FD, EPOLLIN, (struct loop_key){.kind = ops->ev}) < 0)
		die("descriptor %d is not a keeper channel: only sbx-keeper can start this program",
			CONTROL_FD);
}

void control_hello(struct control *c)
{
	if (chan_send_hello(CONTROL_FD, SBX_BUILD) < 0)
		die("the keeper has closed the channel");
	c->phase = chan_after(c->ops->chan, c->phase, CHAN_HELLO);
}

void control_quit(struct control *c, int status)
{
	if (!c->done)
		c->status = status;
	c->done = true;
}

static void watch_channel(struct control *c)
{
	uint32_t events = c->is_due ? EPOLLOUT : c->wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN;

	if (loop_mod(c->loop, CONTROL_FD, events, (struct loop_key){.kind = c->ops->ev}) < 0)
		control_quit(c, CONTROL_EXIT_KEEPER);
}

/* The kernel counts the descriptors that all processes of the user have sent and no process has
 * received. Other processes may have used up the limit, and no event reports when it is free again.
 * Messages without a descriptor do not wait. */
static void try_again(struct control *c)
{
	if (!c->is_crowded)
		log_warn(
			"cannot pass on %s yet: processes of this user have too many descriptors in flight",
			c->ops->passed);
	c->is_crowded = true;
	loop_timer_set(c->loop, &c->again, clock_mono_ms() + CONTROL_AGAIN_MS,
		(struct loop_key){.kind = c->ops->ev_again});
}

bool control_sent(struct control *c, int r)
{
	if (r == 0)
		return true;
	if (r == -ETOOMANYREFS && c->ops->passed) {
		try_again(c);
	} else if (r != -EAGAIN) {
		control_quit(c, CONTROL_EXIT_OK);
	} else if (!c->is_due) {
		c->is_due = true;
		watch_channel(c);
	}
	return false;
}

void control_want_room(struct control *c)
{
	if (c->wants_room)
		return;
	c->wants_room = true;
	watch_channel(c);
}

void control_flush(struct control *c)
{
	c->is_due = c->wants_room = false;
	c->ops->on_room(c->ctx);
	if (!c->done)
		watch_channel(c);
}

static int take_message(struct control *c, struct ipc_msg *msg)
{
	if (!chan_allows(c->ops->chan, c->phase, CHAN_FROM_KEEPER, msg->type))
		return -EBADMSG;
	c->phase = chan_after(c->ops->chan, c->phase, msg->type);
	return c->ops->on_message(c->ctx, msg);
}

/* Whether there may be more. */
static bool receive_one(struct control *c)
{
	static struct ipc_msg msg; /* 16 KiB */
	int r;

	msg.fd = -1;
	r = ipc_recv(CONTROL_FD, &msg);
	if (r == -EAGAIN)
		return false;
	if (r == 0) {
		control_quit(c, CONTROL_EXIT_OK);
		return false;
	}
	if (r > 0)
		r = take_message(c, &msg);
	ipc_msg_done(&msg);
	if (r < 0) {
		log_error("protocol error: invalid message %u from the keeper", msg.type);
		control_quit(c, CONTROL_EXIT_KEEPER);
	}
	return !c->done;
}

void control_on_event(struct control *c, uint32_t events)
{
	if (events & EPOLLOUT && (c->is_due || c->wants_room))
		control_flush(c);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	for (unsigned i = 0; i < c->ops->burst && !c->is_due && !c->done && receive_one(c); i++)
		;
}

void control_drain(struct control *c)
{
	while (!c->is_due && !c->done && receive_one(c))
		;
}
