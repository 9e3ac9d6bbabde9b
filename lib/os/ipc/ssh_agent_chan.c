/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_agent_chan.h"

#include <errno.h>

#define IN(phase) (1U << SSH_AGENT_PHASE_##phase)

static const struct chan_row rows[SSH_AGENT_N_MSGS] = {
	[SSH_AGENT_HELLO] = {"HELLO", CHAN_FROM_WORKER, IN(START), SSH_AGENT_PHASE_CONFIG, 0},
	[SSH_AGENT_CONFIG] = {"CONFIG", CHAN_FROM_KEEPER, IN(CONFIG), SSH_AGENT_PHASE_RUN, CHAN_FD},
	[SSH_AGENT_OPEN] = {"OPEN", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[SSH_AGENT_CLOSED] = {"CLOSED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[SSH_AGENT_ASK] = {"ASK", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[SSH_AGENT_VERDICT] = {"VERDICT", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_ID},
};

const struct chan ssh_agent_chan = {.sides = {"keeper", "ssh-agent"},
	.rows = rows,
	.n_rows = SSH_AGENT_N_MSGS,
	.n_phases = SSH_AGENT_N_PHASES};

int ssh_agent_send_closed(int sock, uint32_t id)
{
	return ipc_send(sock, SSH_AGENT_CLOSED, id, slice_of(NULL, 0), -1);
}

int ssh_agent_send_ask(int sock, uint32_t id, const struct ssh_agent_ask *ask)
{
	uint8_t buf[sizeof(*ask) + 16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)ask->what);
	wr_cstr(&wr, ask->fingerprint);
	wr_cstr(&wr, ask->comment);
	wr_cstr(&wr, ask->text);
	return ipc_send_wr(sock, SSH_AGENT_ASK, id, &wr, -1);
}

int ssh_agent_ask_config(int sock, const struct ssh_agent_config *config, int fd)
{
	uint8_t buf[sizeof(*config) + 2 * SSH_AGENT_MAX_RULES];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, config->n_rules);
	for (size_t i = 0; i < config->n_rules && i < SSH_AGENT_MAX_RULES; i++)
		wr_cstr(&wr, config->rules[i]);
	return ipc_send_wr(sock, SSH_AGENT_CONFIG, 0, &wr, fd);
}

int ssh_agent_ask_open(int sock, uint32_t id, int fd)
{
	return ipc_send(sock, SSH_AGENT_OPEN, id, slice_of(NULL, 0), fd);
}

int ssh_agent_answer_ask(int sock, uint32_t id, bool allowed)
{
	uint8_t yes = allowed;

	return ipc_send(sock, SSH_AGENT_VERDICT, id, slice_of(&yes, 1), -1);
}

int ssh_agent_get_config(const struct ipc_msg *msg, struct ssh_agent_config *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret = (struct ssh_agent_config){.n_rules = rd_u8(&rd)};
	if (msg->type != SSH_AGENT_CONFIG || msg->fd < 0 || ret->n_rules > SSH_AGENT_MAX_RULES)
		return -EBADMSG;
	for (size_t i = 0; i < ret->n_rules; i++) {
		rd_cstr(&rd, ret->rules[i], sizeof(ret->rules[i]));
		if (!ret->rules[i][0]) /* would be the keys without a comment */
			return -EBADMSG;
	}
	return rd_finish(&rd);
}

int ssh_agent_get_ask(const struct ipc_msg *msg, struct ssh_agent_ask *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t what = rd_u8(&rd);

	*ret = (struct ssh_agent_ask){0};
	rd_cstr(&rd, ret->fingerprint, sizeof(ret->fingerprint));
	rd_cstr(&rd, ret->comment, sizeof(ret->comment));
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	if (msg->type != SSH_AGENT_ASK || msg->fd >= 0 || what >= SSH_AGENT_N_WHATS ||
		rd_finish(&rd) < 0)
		return -EBADMSG;
	ret->what = (enum ssh_agent_what)what;
	/* It is shown to a person and written to the log. */
	if (!ipc_is_printable(ret->fingerprint) || !ipc_is_printable(ret->comment) ||
		!ipc_is_printable(ret->text))
		return -EBADMSG;
	return ret->fingerprint[0] ? 0 : -EBADMSG;
}

int ssh_agent_get_verdict(const struct ipc_msg *msg, bool *ret_allowed)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t yes = rd_u8(&rd);

	if (msg->type != SSH_AGENT_VERDICT || msg->fd >= 0 || rd_finish(&rd) < 0 || yes > 1)
		return -EBADMSG;
	*ret_allowed = yes;
	return 0;
}
