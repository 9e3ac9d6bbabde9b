/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_agent.h"

#include <errno.h>
#include <string.h>

void control_report(struct ssh_agent *a, struct stream *s)
{
	if (s->ask_due) {
		if (!control_sent(&a->control, ssh_agent_send_ask(CONTROL_FD, s->ask_id, &s->ask)))
			return;
		s->ask_due = false;
	}
	if (s->closed_due &&
		control_sent(&a->control, chan_send_plain(CONTROL_FD, SSH_AGENT_CLOSED, s->id, -1)))
		*s = (struct stream){.gen = s->gen + 1};
}

static void flush_due(void *ctx)
{
	struct ssh_agent *a = ctx;

	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN && !a->control.is_due; i++)
		control_report(a, &a->streams[i]);
}

static int on_config(struct ssh_agent *a, struct ipc_msg *msg)
{
	static struct ssh_agent_config config;
	int r = ssh_agent_get_config(msg, &config);

	if (r < 0)
		return r;
	a->filter.n_rules = config.n_rules;
	for (size_t i = 0; i < config.n_rules; i++)
		memcpy(a->filter.rules[i], config.rules[i], sizeof(a->filter.rules[i]));
	return host_begin(a, TAKE_FD(msg->fd));
}

static int on_message(void *ctx, struct ipc_msg *msg)
{
	struct ssh_agent *a = ctx;
	bool allowed = false;
	int r;

	switch (msg->type) {
	case SSH_AGENT_CONFIG:
		return on_config(a, msg);
	case SSH_AGENT_OPEN:
		r = chan_get_plain(&ssh_agent_chan, msg, SSH_AGENT_OPEN);
		if (r == 0)
			stream_open(a, msg->id, TAKE_FD(msg->fd));
		return r;
	case SSH_AGENT_VERDICT:
		r = ssh_agent_get_verdict(msg, &allowed);
		return r < 0 ? r : stream_on_verdict(a, msg->id, allowed);
	default:
		return -EBADMSG;
	}
}

const struct control_ops ssh_agent_control = {.chan = &ssh_agent_chan,
	.ev = SSH_AGENT_EV_CONTROL,
	.burst = 1,
	.on_message = on_message,
	.on_room = flush_due};
