/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include "lib/base/log.h"

static void watch_control(struct agent *a)
{
	uint32_t events = a->reports_due ? EPOLLOUT : EPOLLIN;

	if (loop_mod(&a->loop, AGENT_CONTROL_FD, events,
		    (struct loop_key){.kind = AGENT_EV_CONTROL}) < 0)
		agent_quit(a, AGENT_EXIT_KEEPER);
}

/* Whether it went out; when not, the keeper does not read (tried again later) or is gone. */
static bool sent_control(struct agent *a, int r)
{
	if (r == 0)
		return true;
	if (r != -EAGAIN) {
		agent_quit(a, AGENT_EXIT_OK);
	} else if (!a->reports_due) {
		a->reports_due = true;
		watch_control(a);
	}
	return false;
}

void control_report(struct agent *a, struct stream *s)
{
	if (s->ask_due) {
		if (!sent_control(a, agent_send_ask(AGENT_CONTROL_FD, s->ask_id, &s->ask)))
			return;
		s->ask_due = false;
	}
	if (s->closed_due && sent_control(a, agent_send_closed(AGENT_CONTROL_FD, s->id)))
		*s = (struct stream){.gen = s->gen + 1};
}

static void flush_due(struct agent *a)
{
	a->reports_due = false;
	for (size_t i = 0; i < AGENT_MAX_OPEN && !a->reports_due; i++)
		control_report(a, &a->streams[i]);
	if (!a->reports_due)
		watch_control(a);
}

static int on_config(struct agent *a, struct ipc_msg *msg)
{
	static struct agent_config config;
	int r = agent_get_config(msg, &config);

	if (r < 0)
		return r;
	a->filter.n_rules = config.n_rules;
	for (size_t i = 0; i < config.n_rules; i++)
		memcpy(a->filter.rules[i], config.rules[i], sizeof(a->filter.rules[i]));
	return host_begin(a, TAKE_FD(msg->fd));
}

static int on_message(struct agent *a, struct ipc_msg *msg)
{
	bool allowed = false;
	int r;

	if (!chan_allows(&agent_chan, a->phase, CHAN_FROM_KEEPER, msg->type))
		return -EBADMSG;
	a->phase = chan_after(&agent_chan, a->phase, msg->type);
	switch (msg->type) {
	case AGENT_CONFIG:
		return on_config(a, msg);
	case AGENT_OPEN:
		r = chan_get_plain(&agent_chan, msg, AGENT_OPEN);
		if (r == 0)
			stream_open(a, msg->id, TAKE_FD(msg->fd));
		return r;
	case AGENT_VERDICT:
		r = agent_get_verdict(msg, &allowed);
		return r < 0 ? r : stream_on_verdict(a, msg->id, allowed);
	default:
		return -EBADMSG;
	}
}

void control_on_event(struct agent *a, uint32_t events)
{
	static struct ipc_msg msg;
	int r;

	if (a->reports_due) {
		flush_due(a);
		return;
	}
	r = ipc_recv(AGENT_CONTROL_FD, &msg);
	if (r == -EAGAIN)
		return;
	if (r == 0) {
		agent_quit(a, AGENT_EXIT_OK);
		return;
	}
	if (r > 0) {
		r = on_message(a, &msg);
		ipc_msg_done(&msg);
	}
	if (r < 0) {
		log_error("message %u of the keeper against the protocol", msg.type);
		agent_quit(a, AGENT_EXIT_KEEPER);
	}
}
