/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_agent_chan - the messages between a keeper and its sbx-ssh-agent, on the agent's fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg. The header's id names the stream (keeper chooses it) or
 *          the ASK (agent chooses it). ssh_agent_chan is this table, used by both sides:
 *
 *          message  direction        phase           fd               fields
 *          HELLO    agent -> keeper  START > CONFIG  -                build id
 *          CONFIG   keeper -> agent  CONFIG > RUN    host's agent     u8 n, n rules
 *          OPEN     keeper -> agent  RUN             guest's stream   -
 *          CLOSED   agent -> keeper  RUN, per OPEN   -                -
 *          ASK      agent -> keeper  RUN             -                struct ssh_agent_ask
 *          VERDICT  keeper -> agent  RUN, per ASK    -                u8 allowed
 *
 *          The agent signs only after the keeper has allowed it. The keeper writes the audit record
 *          and, if configured, prompts the user.
 * Trust    keeper: the agent reads what the guest sends. agent: also checks the keeper.
 * Limits   SSH_AGENT_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, ssh_agent_chan_test.c, ssh_agent_chan_fuzz.c
 */
#pragma once

#include "chan.h"

#define SSH_AGENT_MAX_RULES 32
#define SSH_AGENT_MAX_RULE 128
#define SSH_AGENT_MAX_FINGERPRINT 52
#define SSH_AGENT_MAX_TEXT 128
#define SSH_AGENT_MAX_OPEN 16 /* streams at once, and so ASKs */

enum ssh_agent_msg {
	SSH_AGENT_HELLO = CHAN_HELLO,
	SSH_AGENT_CONFIG,
	SSH_AGENT_OPEN,
	SSH_AGENT_CLOSED,
	SSH_AGENT_ASK,
	SSH_AGENT_VERDICT,
	SSH_AGENT_N_MSGS,
};

enum ssh_agent_phase {
	SSH_AGENT_PHASE_START,
	SSH_AGENT_PHASE_CONFIG,
	SSH_AGENT_PHASE_RUN,
	SSH_AGENT_PHASE_END,
	SSH_AGENT_N_PHASES,
};

extern const struct chan ssh_agent_chan;

struct ssh_agent_config {
	uint8_t n_rules; /* 0: every key of the host's agent */
	char rules[SSH_AGENT_MAX_RULES][SSH_AGENT_MAX_RULE];
};

enum ssh_agent_what { SSH_AGENT_LOGIN, SSH_AGENT_FILE, SSH_AGENT_OTHER, SSH_AGENT_N_WHATS };

/* One signature that the guest requests. All texts are printable. */
struct ssh_agent_ask {
	enum ssh_agent_what what;
	char fingerprint[SSH_AGENT_MAX_FINGERPRINT];
	char comment[SSH_AGENT_MAX_TEXT]; /* of the key */
	char text
		[SSH_AGENT_MAX_TEXT]; /* LOGIN: the user's name there; FILE: the namespace, "git" */
};

/* agent's side. HELLO: chan_send_hello. CLOSED: chan_send_plain. */
int ssh_agent_send_ask(int sock, uint32_t id, const struct ssh_agent_ask *ask) MUST_CHECK;

/* keeper's side; fds stay the caller's. OPEN: chan_send_plain. */
int ssh_agent_ask_config(int sock, const struct ssh_agent_config *config, int fd) MUST_CHECK;
int ssh_agent_answer_ask(int sock, uint32_t id, bool allowed) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. CONFIG leaves the fd in the message. */
int ssh_agent_get_config(const struct ipc_msg *msg, struct ssh_agent_config *ret) MUST_CHECK;
int ssh_agent_get_ask(const struct ipc_msg *msg, struct ssh_agent_ask *ret) MUST_CHECK;
int ssh_agent_get_verdict(const struct ipc_msg *msg, bool *ret_allowed) MUST_CHECK;
