/* SPDX-License-Identifier: Apache-2.0 */
#include "edge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "lib/base/log.h"

static int send_over(const struct bridge *b)
{
	return b->replied ? chan_send_plain(CONTROL_FD, EDGE_CLOSED, b->id, -1)
			  : edge_send_refused(CONTROL_FD, b->id, b->reason);
}

void control_report(struct edge *e, struct bridge *b)
{
	if (b->opened_due) {
		if (!control_sent(&e->control, edge_send_opened(CONTROL_FD, b->id, b->status)))
			return;
		b->opened_due = false;
	}
	if (b->over_due && control_sent(&e->control, send_over(b)))
		bridge_free(e, b);
}

void control_refuse(struct edge *e, uint32_t id)
{
	e->refused_id = id;
	e->refused_due =
		!control_sent(&e->control, edge_send_refused(CONTROL_FD, id, EDGE_REASON_FULL)) &&
		!e->control.done;
}

int control_send_ask(struct edge *e, uint32_t id, const struct edge_ask *ask)
{
	int r = edge_send_ask(CONTROL_FD, id, ask);

	if (r == 0)
		return 0;
	/* The number of connections limits asks, and verdicts reduce it. */
	if (r == -EAGAIN)
		control_want_room(&e->control);
	else
		control_quit(&e->control, CONTROL_EXIT_OK);
	return -EAGAIN;
}

/* The ask may wait for a person: its approval must not be used for nobody. */
void control_send_gone(struct edge *e, uint32_t id)
{
	if (!e->control.wants_room && !e->control.done)
		(void)!chan_send_plain(CONTROL_FD, EDGE_GONE, id, -1);
}

static void flush_due(void *ctx)
{
	struct edge *e = ctx;

	if (e->refused_due)
		control_refuse(e, e->refused_id);
	for (size_t i = 0; i < EDGE_MAX_STREAMS && !e->control.is_due; i++) {
		if (e->bridges[i].used)
			control_report(e, &e->bridges[i]);
	}
	asks_flush(e);
}

void control_ready(struct edge *e)
{
	loop_timer_clear(&e->loop, &e->ready_timer);
	if (chan_send_plain(CONTROL_FD, EDGE_READY, 0, -1) < 0)
		control_quit(&e->control, CONTROL_EXIT_OK);
	e->control.phase = chan_after(&edge_chan, e->control.phase, EDGE_READY);
}

void control_lost(struct edge *e, const char *fmt, ...)
{
	char text[EDGE_MAX_TEXT];
	va_list ap;

	if (e->control.done)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	/* A keeper that does not read sees the process exit instead. */
	(void)!edge_send_lost(CONTROL_FD, text);
	e->control.phase = chan_after(&edge_chan, e->control.phase, EDGE_LOST);
	control_quit(&e->control, EDGE_EXIT_LOST);
}

static int answer_config(struct edge *e, struct ipc_msg *msg)
{
	struct edge_config config;
	struct err err = {0};
	int r = edge_get_config(msg, &config);

	if (r < 0)
		return r;
	r = opener_new(&config, &e->opener, &err);
	/* The key of the CA is in both. */
	explicit_bzero(config.saved, sizeof(config.saved));
	explicit_bzero(msg->body, msg->n);
	if (r < 0)
		control_lost(e, "%s", err_text(&err, r));
	else if (opener_tell(e->opener, CONTROL_FD) < 0)
		control_quit(&e->control, CONTROL_EXIT_OK);
	else
		guest_start(e, TAKE_FD(msg->fd), config.ready_ms);
	return 0;
}

static int answer_open(struct edge *e, struct ipc_msg *msg)
{
	char path[EDGE_MAX_PATH];
	int r = edge_get_open(msg, path);

	if (r == 0)
		bridge_open(e, msg->id, path, TAKE_FD(msg->fd));
	return r;
}

static int answer_net(struct edge *e, struct ipc_msg *msg)
{
	int r = chan_get_plain(&edge_chan, msg, EDGE_NET);

	if (r == 0 && e->net)
		r = -EBADMSG;
	if (r == 0)
		net_start(e, TAKE_FD(msg->fd));
	return r;
}

static int answer_channel(struct edge *e, struct ipc_msg *msg)
{
	int r = chan_get_plain(&edge_chan, msg, EDGE_CHANNEL);

	if (r == 0)
		net_on_channel(e, msg->id, TAKE_FD(msg->fd));
	return r;
}

static int answer_verdict(struct edge *e, struct ipc_msg *msg)
{
	struct edge_verdict verdict;
	int r = edge_get_verdict(msg, &verdict);

	return r == 0 ? net_on_verdict(e, msg->id, &verdict, TAKE_FD(msg->fd)) : r;
}

static int answer_control(void *ctx, struct ipc_msg *msg)
{
	struct edge *e = ctx;

	switch (msg->type) {
	case EDGE_CONFIG:
		return answer_config(e, msg);
	case EDGE_OPEN:
		return answer_open(e, msg);
	case EDGE_NET:
		return answer_net(e, msg);
	case EDGE_CHANNEL:
		return answer_channel(e, msg);
	case EDGE_VERDICT:
		return answer_verdict(e, msg);
	default:
		return -EBADMSG;
	}
}

const struct control_ops edge_control = {.chan = &edge_chan,
	.ev = EDGE_EV_CONTROL,
	.burst = 16,
	.on_message = answer_control,
	.on_room = flush_due};
