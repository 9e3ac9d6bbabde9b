/* SPDX-License-Identifier: Apache-2.0 */
#include "edge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "lib/base/log.h"

/* Messages read before the loop looks at the other events again. */
#define MESSAGES 16

static void quit_control(struct edge *e, enum edge_exit status)
{
	if (!e->done)
		e->status = status;
	e->done = true;
}

static void watch_control(struct edge *e)
{
	/* While a report is due nothing more is read: a keeper that does not listen is not
	 * answered either, so what is due stays bounded. Asks are bounded by the connections, and
	 * reading goes on: verdicts are what makes them fewer. */
	uint32_t events = e->reports_due ? EPOLLOUT : e->asks_due ? EPOLLIN | EPOLLOUT : EPOLLIN;

	if (loop_mod(&e->loop, EDGE_CONTROL_FD, events,
		    (struct loop_key){.kind = EDGE_EV_CONTROL}) < 0)
		quit_control(e, EDGE_EXIT_KEEPER);
}

/* Whether it went out; when not, the keeper does not read (tried again later) or is gone. */
static bool sent_control(struct edge *e, int r)
{
	if (r == 0)
		return true;
	if (r != -EAGAIN) {
		quit_control(e, EDGE_EXIT_OK);
	} else if (!e->reports_due) {
		e->reports_due = true;
		watch_control(e);
	}
	return false;
}

static int send_over(const struct bridge *b)
{
	return b->replied ? edge_send_closed(EDGE_CONTROL_FD, b->id)
			  : edge_send_refused(EDGE_CONTROL_FD, b->id, b->reason);
}

void control_report(struct edge *e, struct bridge *b)
{
	if (b->opened_due) {
		if (!sent_control(e, edge_send_opened(EDGE_CONTROL_FD, b->id, b->status)))
			return;
		b->opened_due = false;
	}
	if (b->over_due && sent_control(e, send_over(b)))
		bridge_free(e, b);
}

void control_refuse(struct edge *e, uint32_t id)
{
	e->refused_id = id;
	e->refused_due =
		!sent_control(e, edge_send_refused(EDGE_CONTROL_FD, id, EDGE_REASON_FULL)) &&
		!e->done;
}

int control_send_ask(struct edge *e, uint32_t id, const struct edge_ask *ask)
{
	int r = edge_send_ask(EDGE_CONTROL_FD, id, ask);

	if (r == 0)
		return 0;
	if (r != -EAGAIN) {
		quit_control(e, EDGE_EXIT_OK);
	} else if (!e->asks_due) {
		e->asks_due = true;
		watch_control(e);
	}
	return -EAGAIN;
}

static void flush_due(struct edge *e)
{
	e->reports_due = e->asks_due = false;
	if (e->refused_due)
		control_refuse(e, e->refused_id);
	for (size_t i = 0; i < EDGE_MAX_STREAMS && !e->reports_due; i++) {
		if (e->bridges[i].used)
			control_report(e, &e->bridges[i]);
	}
	asks_flush(e);
	if (!e->done)
		watch_control(e);
}

void control_ready(struct edge *e)
{
	loop_timer_clear(&e->loop, &e->ready_timer);
	if (edge_send_ready(EDGE_CONTROL_FD) < 0)
		quit_control(e, EDGE_EXIT_OK);
	e->phase = chan_after(&edge_chan, e->phase, EDGE_READY);
}

void control_lost(struct edge *e, const char *fmt, ...)
{
	char text[EDGE_MAX_TEXT];
	va_list ap;

	if (e->done)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	/* A keeper that does not read sees the end of the process instead. */
	(void)!edge_send_lost(EDGE_CONTROL_FD, text);
	e->phase = chan_after(&edge_chan, e->phase, EDGE_LOST);
	quit_control(e, EDGE_EXIT_LOST);
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
	else if (opener_tell(e->opener, EDGE_CONTROL_FD) < 0)
		quit_control(e, EDGE_EXIT_OK);
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

static int answer_verdict(struct edge *e, struct ipc_msg *msg)
{
	struct edge_verdict verdict;
	int r = edge_get_verdict(msg, &verdict);

	return r == 0 ? net_on_verdict(e, msg->id, &verdict, TAKE_FD(msg->fd)) : r;
}

static int answer_control(struct edge *e, struct ipc_msg *msg)
{
	if (!chan_allows(&edge_chan, e->phase, CHAN_FROM_KEEPER, msg->type))
		return -EBADMSG;
	e->phase = chan_after(&edge_chan, e->phase, msg->type);
	switch (msg->type) {
	case EDGE_CONFIG:
		return answer_config(e, msg);
	case EDGE_OPEN:
		return answer_open(e, msg);
	case EDGE_NET:
		return answer_net(e, msg);
	case EDGE_VERDICT:
		return answer_verdict(e, msg);
	default:
		return -EBADMSG;
	}
}

/* Whether there may be more. */
static bool receive_one(struct edge *e)
{
	static struct ipc_msg msg;
	int r;

	msg.fd = -1;
	r = ipc_recv(EDGE_CONTROL_FD, &msg);
	if (r == -EAGAIN)
		return false;
	if (r == 0) {
		quit_control(e, EDGE_EXIT_OK);
		return false;
	}
	if (r > 0)
		r = answer_control(e, &msg);
	ipc_msg_done(&msg);
	if (r < 0) {
		log_error("message %u of the keeper against the protocol", msg.type);
		quit_control(e, EDGE_EXIT_KEEPER);
	}
	return !e->done;
}

void control_on_event(struct edge *e, uint32_t events)
{
	if (events & EPOLLOUT && (e->reports_due || e->asks_due))
		flush_due(e);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	for (unsigned i = 0; i < MESSAGES && !e->reports_due && receive_one(e); i++)
		;
}
