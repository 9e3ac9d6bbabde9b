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

static const struct field ask_fields[] = {
	FIELD_ENUM(ssh_agent_ask, what, SSH_AGENT_N_WHATS),
	FIELD_TEXT(ssh_agent_ask, fingerprint),
	FIELD_TEXT(ssh_agent_ask, comment),
	FIELD_TEXT(ssh_agent_ask, text),
	{0},
};

int ssh_agent_send_ask(int sock, uint32_t id, const struct ssh_agent_ask *ask)
{
	return chan_send(sock, SSH_AGENT_ASK, id, ask_fields, ask, -1);
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

static const struct field verdict_fields[] = {FIELD_ONE(bool, 0, 1), {0}};

int ssh_agent_answer_ask(int sock, uint32_t id, bool allowed)
{
	return chan_send(sock, SSH_AGENT_VERDICT, id, verdict_fields, &allowed, -1);
}

int ssh_agent_get_config(const struct ipc_msg *msg, struct ssh_agent_config *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret = (struct ssh_agent_config){.n_rules = rd_u8(&rd)};
	if (ret->n_rules > SSH_AGENT_MAX_RULES)
		return -EBADMSG;
	for (size_t i = 0; i < ret->n_rules; i++) {
		rd_cstr(&rd, ret->rules[i], sizeof(ret->rules[i]));
		if (!ret->rules[i][0]) /* would be the keys without a comment */
			return -EBADMSG;
	}
	return chan_finish(&ssh_agent_chan, msg, SSH_AGENT_CONFIG, &rd);
}

int ssh_agent_get_ask(const struct ipc_msg *msg, struct ssh_agent_ask *ret)
{
	int r;

	*ret = (struct ssh_agent_ask){0};
	r = chan_get(&ssh_agent_chan, msg, SSH_AGENT_ASK, ask_fields, ret);
	return ret->fingerprint[0] ? r : -EBADMSG;
}

int ssh_agent_get_verdict(const struct ipc_msg *msg, bool *ret_allowed)
{
	return chan_get(&ssh_agent_chan, msg, SSH_AGENT_VERDICT, verdict_fields, ret_allowed);
}
